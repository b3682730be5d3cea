{{- define "sindri-broker.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "sindri-broker.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "sindri-broker.selector" -}}
app.kubernetes.io/name: {{ include "sindri-broker.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "sindri-broker.labels" -}}
{{ include "sindri-broker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: sindri
{{- end -}}

{{- define "sindri-broker.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "sindri-broker.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "sindri-broker.keysSecret" -}}
{{- default (printf "%s-keys" (include "sindri-broker.fullname" .)) .Values.keys.existingSecret -}}
{{- end -}}

{{- define "sindri-broker.scheme" -}}
{{- if .Values.tls.existingSecret -}}https{{- else -}}http{{- end -}}
{{- end -}}

{{/* Settings as environment variables: the prefix, and the names of the setting in capitals. */}}
{{- define "sindri-broker.variables" -}}
{{- $prefix := .prefix -}}
{{- range $name, $value := .settings -}}
{{- $variable := printf "%s__%s" $prefix (upper $name) -}}
{{- if kindIs "map" $value -}}
{{- include "sindri-broker.variables" (dict "prefix" $variable "settings" $value) -}}
{{- else if kindIs "float64" $value }}
- name: {{ $variable }}
  value: {{ int64 $value | toString | quote }}
{{- else }}
- name: {{ $variable }}
  value: {{ $value | toString | quote }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The template of the pod. */}}
{{- define "sindri-broker.pod" -}}
metadata:
  labels:
    {{- include "sindri-broker.labels" . | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ include "sindri-broker.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  securityContext:
    {{- toYaml .Values.podSecurityContext | nindent 4 }}
  containers:
    - name: broker
      image: {{ printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      env:
        - name: SINDRI__BROKER__LISTEN
          value: {{ printf "%s:3000" .Values.listenHost | quote }}
        - name: SINDRI__BROKER__DATABASE__URL
          {{- if eq .Values.database.kind "postgres" }}
          valueFrom:
            secretKeyRef:
              name: {{ .Values.database.postgres.existingSecret }}
              key: {{ .Values.database.postgres.urlKey }}
          {{- else }}
          value: sqlite:/var/lib/sindri/sindri.db
          {{- end }}
        - name: SINDRI__BROKER__ADMIN_KEY_FILE
          value: {{ printf "/etc/sindri/keys/%s" .Values.keys.adminKey }}
        {{- with .Values.keys.encryptionKey }}
        - name: SINDRI__BROKER__WEBHOOKS__ENCRYPTION_KEY_FILE
          value: {{ printf "/etc/sindri/keys/%s" . }}
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - name: SINDRI__BROKER__TLS__CERTIFICATE_FILE
          value: /etc/sindri/tls/tls.crt
        - name: SINDRI__BROKER__TLS__KEY_FILE
          value: /etc/sindri/tls/tls.key
        {{- end }}
        {{- with include "sindri-broker.variables" (dict "prefix" "SINDRI__BROKER" "settings" .Values.settings) | trim }}
        {{- . | nindent 8 }}
        {{- end }}
      ports:
        - name: http
          containerPort: 3000
      startupProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "sindri-broker.scheme" . | upper }}}
        periodSeconds: 2
        failureThreshold: {{ divf .Values.startupSeconds 2 | ceil | int }}
      livenessProbe:
        httpGet: {path: /healthz, port: http, scheme: {{ include "sindri-broker.scheme" . | upper }}}
        periodSeconds: 10
        timeoutSeconds: 5
      readinessProbe:
        httpGet: {path: /readyz, port: http, scheme: {{ include "sindri-broker.scheme" . | upper }}}
        periodSeconds: 5
        timeoutSeconds: 5
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- toYaml .Values.securityContext | nindent 8 }}
      volumeMounts:
        - {name: keys, mountPath: /etc/sindri/keys, readOnly: true}
        - {name: tmp, mountPath: /tmp}
        {{- if .Values.tls.existingSecret }}
        - {name: tls, mountPath: /etc/sindri/tls, readOnly: true}
        {{- end }}
        {{- if eq .Values.database.kind "sqlite" }}
        - {name: data, mountPath: /var/lib/sindri}
        {{- else if .Values.database.postgres.caSecret }}
        - {name: postgres, mountPath: /etc/sindri/postgres, readOnly: true}
        {{- end }}
  volumes:
    - name: keys
      secret:
        secretName: {{ include "sindri-broker.keysSecret" . }}
        defaultMode: 0440
    - name: tmp
      emptyDir: {}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- if eq .Values.database.kind "sqlite" }}
    {{- with .Values.database.sqlite.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ . }}
    {{- end }}
    {{- else if .Values.database.postgres.caSecret }}
    - name: postgres
      secret:
        secretName: {{ .Values.database.postgres.caSecret }}
        defaultMode: 0440
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if gt (int .Values.replicas) 1 }}
  topologySpreadConstraints:
    - maxSkew: 1
      topologyKey: kubernetes.io/hostname
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "sindri-broker.selector" . | nindent 10 }}
  {{- end }}
{{- end -}}
