// The controllers of KubeRay for RayClusters and RayJobs as a process: those of its release, without its webhooks.
package main

import (
	"os"

	config "github.com/ray-project/kuberay/ray-operator/apis/config/v1alpha1"
	rayv1 "github.com/ray-project/kuberay/ray-operator/apis/ray/v1"
	"github.com/ray-project/kuberay/ray-operator/controllers/ray"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "ray")
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(rayv1.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(err)
	ctx := ctrl.SetupSignalHandler()
	must(ray.NewReconciler(ctx, mgr, ray.RayClusterReconcilerOptions{}).SetupWithManager(mgr, 1))
	jobs := ray.NewRayJobReconciler(ctx, mgr, ray.RayJobReconcilerOptions{}, config.Configuration{})
	must(jobs.SetupWithManager(mgr, 1))
	must(mgr.Start(ctx))
}
