// Training operator's controller of PyTorchJobs and their webhook, as its release has them.
//
// The release's own main makes a certificate for its webhook, and waits until a kubelet has put it
// into a folder of /tmp that is the same for all. This one takes the folder that it is told.
package main

import (
	"flag"
	"log"

	kubeflow "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1"
	"github.com/kubeflow/training-operator/pkg/config"
	"github.com/kubeflow/training-operator/pkg/controller.v1/common"
	controller "github.com/kubeflow/training-operator/pkg/controller.v1/pytorch"
	webhooks "github.com/kubeflow/training-operator/pkg/webhooks/pytorch"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metrics "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	port := flag.Int("webhook-port", 9443, "of 127.0.0.1")
	certificates := flag.String("certificates", "", "folder of tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	config.Config.PyTorchInitContainerImage = config.PyTorchInitContainerImageDefault
	config.Config.PyTorchInitContainerMaxTries = config.PyTorchInitContainerMaxTriesDefault

	scheme := runtime.NewScheme()
	check(clientgoscheme.AddToScheme(scheme))
	check(kubeflow.AddToScheme(scheme))
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metrics.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: "127.0.0.1", Port: *port, CertDir: *certificates,
		}),
	})
	check(err)
	check(controller.NewReconciler(manager, common.GenNonGangSchedulerSetupFunc()).SetupWithManager(manager, 1))
	check(webhooks.SetupWebhook(manager))
	check(manager.Start(ctrl.SetupSignalHandler()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
