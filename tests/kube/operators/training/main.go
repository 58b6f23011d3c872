// The PyTorchJob controller of Kubeflow's training operator as a process: that of its release, without its webhooks.
package main

import (
	"os"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	controllers "github.com/kubeflow/training-operator/pkg/controller.v1"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	"github.com/kubeflow/training-operator/pkg/config"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func must(err error) {
	if err != nil {
		ctrl.Log.Error(err, "training-operator")
		os.Exit(1)
	}
}

func main() {
	ctrl.SetLogger(zap.New())
	// What its flags say by default.
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault
	scheme := runtime.NewScheme()
	must(clientgoscheme.AddToScheme(scheme))
	must(kubeflow.AddToScheme(scheme))
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	must(err)
	setup := controllers.SupportedSchemeReconciler[kubeflow.PyTorchJobKind]
	must(setup(mgr, common.GenNonGangSchedulerSetupFunc(), 1))
	must(mgr.Start(ctrl.SetupSignalHandler()))
}
