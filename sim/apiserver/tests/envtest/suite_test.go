// A typical suite for a real API server: it starts controller-runtime's test environment, which finds its
// binaries in TEST_ASSET_KUBE_APISERVER and TEST_ASSET_ETCD, and runs a controller against it.
package suite

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// labeller sets the label `seen` on every ConfigMap.
type labeller struct{ client.Client }

func (l *labeller) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var configMap corev1.ConfigMap
	if err := l.Get(ctx, request.NamespacedName, &configMap); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if configMap.Labels["seen"] == "yes" {
		return ctrl.Result{}, nil
	}
	base := configMap.DeepCopy()
	if configMap.Labels == nil {
		configMap.Labels = map[string]string{}
	}
	configMap.Labels["seen"] = "yes"
	return ctrl.Result{}, l.Patch(ctx, &configMap, client.MergeFrom(base))
}

func TestAControllerRunsAgainstTheEnvironment(t *testing.T) {
	environment := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{gadgetCRD()}}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("the environment does not start: %v", err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("the environment does not stop: %v", err)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := ctrl.NewControllerManagedBy(manager).For(&corev1.ConfigMap{}).Complete(&labeller{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := manager.Start(ctx); err != nil {
			t.Errorf("the manager ends: %v", err)
		}
	}()
	direct, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	testBuiltInKinds(ctx, t, direct)
	testCustomResources(ctx, t, direct)
	testUsers(ctx, t, environment)
}

func testBuiltInKinds(ctx context.Context, t *testing.T, direct client.Client) {
	settings := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "default"},
		Data:       map[string]string{"colour": "blue"},
	}
	if err := direct.Create(ctx, settings); err != nil {
		t.Fatalf("create: %v", err)
	}
	if settings.UID == "" {
		t.Fatal("the created object has no UID")
	}
	eventually(ctx, t, "the controller labels it", func() bool {
		return direct.Get(ctx, client.ObjectKeyFromObject(settings), settings) == nil && settings.Labels["seen"] == "yes"
	})
	if err := direct.Create(ctx, settings.DeepCopy()); err == nil {
		t.Fatal("the same object can be created twice")
	}
	labels := map[string]string{"app": "web"}
	replicas := int32(2)
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
			},
		},
	}
	if err := direct.Create(ctx, web); err != nil {
		t.Fatalf("create a deployment: %v", err)
	}
	if web.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType {
		t.Fatalf("defaults are missing: %v", web.Spec.Strategy)
	}
	web.Status.Replicas = 2
	web.Status.ReadyReplicas = 2
	if err := direct.Status().Update(ctx, web); err != nil {
		t.Fatalf("update a status: %v", err)
	}
	stale := web.DeepCopy()
	stale.ResourceVersion = "1"
	if err := direct.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Fatalf("a stale update: %v", err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-", Namespace: "default", Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx:1"}}},
	}
	if err := direct.Create(ctx, pod); err != nil {
		t.Fatalf("create a pod without an account: %v", err)
	}
	var pods corev1.PodList
	if err := direct.List(ctx, &pods, client.MatchingLabels(labels)); err != nil || len(pods.Items) != 1 {
		t.Fatalf("list: %v, %d pods", err, len(pods.Items))
	}
	if err := direct.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("default")); err != nil {
		t.Fatalf("delete all: %v", err)
	}
	if err := direct.Delete(ctx, web, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatalf("delete: %v", err)
	}
	if err := direct.Get(ctx, client.ObjectKeyFromObject(web), web); !apierrors.IsNotFound(err) {
		t.Fatalf("the deleted deployment still exists: %v", err)
	}
}

func testCustomResources(ctx context.Context, t *testing.T, direct client.Client) {
	gadget := &unstructured.Unstructured{}
	gadget.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.io", Version: "v1", Kind: "Gadget"})
	gadget.SetName("wheel")
	gadget.SetNamespace("default")
	if err := unstructured.SetNestedField(gadget.Object, int64(3), "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if err := direct.Create(ctx, gadget); err != nil {
		t.Fatalf("create a gadget: %v", err)
	}
	wrong := gadget.DeepCopy()
	wrong.SetName("wrong")
	wrong.SetResourceVersion("")
	if err := unstructured.SetNestedField(wrong.Object, "three", "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if err := direct.Create(ctx, wrong); !apierrors.IsInvalid(err) {
		t.Fatalf("a gadget of the wrong size: %v", err)
	}
}

func testUsers(ctx context.Context, t *testing.T, environment *envtest.Environment) {
	guest, err := environment.AddUser(envtest.User{Name: "guest", Groups: []string{"guests"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	limited, err := client.New(guest.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := limited.List(ctx, &corev1.SecretList{}); !apierrors.IsForbidden(err) {
		t.Fatalf("a guest lists secrets: %v", err)
	}
}

func eventually(ctx context.Context, t *testing.T, description string, holds func() bool) {
	t.Helper()
	poll := func(context.Context) (bool, error) { return holds(), nil }
	if err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 20*time.Second, true, poll); err != nil {
		t.Fatalf("%s: %v", description, err)
	}
}

func gadgetCRD() *apiextensionsv1.CustomResourceDefinition {
	size := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"size": {Type: "integer"},
	}}
	whole := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": size}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets.example.io"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.io", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
			}},
		},
	}
}
