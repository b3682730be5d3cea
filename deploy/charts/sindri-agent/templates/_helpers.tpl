{{- define "sindri-agent.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "sindri-agent.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sindri-agent.selector" -}}
app.kubernetes.io/name: {{ include "sindri-agent.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sindri-agent.labels" -}}
{{ include "sindri-agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sindri
{{- end -}}

{{- define "sindri-agent.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sindri-agent.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* Settings as environment variables: the prefix, and the names of the setting in capitals. */}}
{{- define "sindri-agent.variables" -}}
{{- $prefix := .prefix -}}
{{- range $name, $value := .settings -}}
{{- $variable := printf "%s__%s" $prefix (upper $name) -}}
{{- if kindIs "map" $value -}}
{{- include "sindri-agent.variables" (dict "prefix" $variable "settings" $value) -}}
{{- else if kindIs "float64" $value }}
- name: {{ $variable }}
  value: {{ int64 $value | toString | quote }}
{{- else }}
- name: {{ $variable }}
  value: {{ $value | toString | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Rules for workloads, Events and ServiceAccounts, which are the same in both scopes. */}}
{{- define "sindri-agent.workloadRules" -}}
- apiGroups: [apps]
  resources: [deployments, statefulsets, daemonsets, replicasets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [batch]
  resources: [jobs, cronjobs]
  verbs: [get, list, watch, create, patch, delete]
# Kubernetes Events about objects that could not be written.
- {apiGroups: [""], resources: [events], verbs: [create]}
{{- with .Values.rbac.impersonate }}
# The ServiceAccounts that stacks may name with sindri.dev/service-account.
- {apiGroups: [""], resources: [serviceaccounts], resourceNames: [{{ join ", " . }}], verbs: [impersonate]}
{{- end }}
{{- end -}}
