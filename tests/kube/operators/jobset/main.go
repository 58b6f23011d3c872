// The controllers of JobSet as a process: those of its release, without its webhooks.
package main

import (
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
)

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "jobset")
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(jobset.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(err)
	ctx := ctrl.SetupSignalHandler()
	must(controllers.SetupJobSetIndexes(ctx, mgr.GetFieldIndexer()))
	must(controllers.SetupPodIndexes(ctx, mgr.GetFieldIndexer()))
	must(controllers.NewJobSetReconciler(mgr.GetClient(), scheme, mgr.GetEventRecorderFor("jobset")).SetupWithManager(mgr))
	must(controllers.NewPodReconciler(mgr.GetClient(), scheme, mgr.GetEventRecorderFor("pod")).SetupWithManager(mgr))
	must(mgr.Start(ctx))
}
