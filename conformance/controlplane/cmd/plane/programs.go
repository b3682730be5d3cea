package main

import (
	"fmt"
)

// Names of the programs, of their files and of their logs.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// startEtcd starts etcd on a socket in the directory, which only its owner may read, and on no port.
func (p *plane) startEtcd() error {
	client, peer := "unix://"+etcdSocket, "unix://"+peerSocket
	err := p.group.start(etcd,
		"--name=plane", "--data-dir=etcd",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=plane="+peer,
		// The data is deleted at the end, so it need not be durable.
		"--unsafe-no-fsync",
	)
	if err != nil {
		return err
	}
	return p.group.await(etcd, "etcd to be healthy", etcdMax, func() bool { return isHealthy(p.path(etcdSocket)) })
}

func (p *plane) startAPIServer() error {
	err := p.group.start(apiServer,
		"--etcd-servers=unix://"+etcdSocket,
		"--bind-address="+p.settings.bind, fmt.Sprintf("--secure-port=%d", p.port), "--permit-port-sharing=true",
		"--advertise-address="+advertised,
		"--tls-cert-file="+p.keys.server.certPath, "--tls-private-key-file="+p.keys.server.keyPath,
		"--client-ca-file="+p.keys.authority.certPath, "--token-auth-file="+p.path("tokens.csv"),
		"--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-cluster-ip-range="+serviceRange,
		"--service-account-issuer="+issuer,
		"--service-account-key-file="+p.keys.serviceAccounts,
		"--service-account-signing-key-file="+p.keys.serviceAccounts,
	)
	if err != nil {
		return err
	}
	return p.group.await(apiServer, "the API server to be ready", apiServerMax, func() bool {
		return p.api.isReadable("/readyz") && p.api.isReadable("/api/v1/namespaces/default")
	})
}

// startOthers starts the clients of the API server concurrently, and waits for the default service account, which a
// controller creates and every pod needs, and until pods may be bound to the node.
func (p *plane) startOthers() error {
	for _, start := range []func() error{p.startControllers, p.startScheduler, p.startKwok} {
		if err := start(); err != nil {
			return err
		}
	}
	created := false
	err := p.group.await(controllerManager, "the default service account", controllerMax, func() bool {
		created = created || p.api.create("/api/v1/nodes", newNode())
		return created && p.api.isReadable("/api/v1/namespaces/default/serviceaccounts/default")
	})
	if err != nil {
		return err
	}
	return p.group.await(kwok, "the node to be ready", nodeMax, p.api.isNodeReady)
}

func (p *plane) startControllers() error {
	authority := p.keys.authority
	return p.group.start(controllerManager,
		"--kubeconfig="+p.path("pki/"+controllerManager+".kubeconfig"),
		"--secure-port=0", "--leader-elect=false", "--use-service-account-credentials=true",
		"--service-account-private-key-file="+p.keys.serviceAccounts, "--root-ca-file="+authority.certPath,
		"--cluster-signing-cert-file="+authority.certPath, "--cluster-signing-key-file="+authority.keyPath,
		// By default it throttles itself for seconds while it creates an account for each controller.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// An object whose deletion it sees before it has counted the creation stays counted until the next recount, by
		// default after five minutes.
		"--resource-quota-sync-period=10s",
	)
}

func (p *plane) startScheduler() error {
	kubeconfig := "--kubeconfig=" + p.path("pki/"+scheduler+".kubeconfig")
	return p.group.start(scheduler, kubeconfig, "--secure-port=0", "--leader-elect=false")
}

// startKwok starts kwok, which simulates the kubelets of all nodes. It has no listener.
func (p *plane) startKwok() error {
	return p.group.start(kwok,
		"--kubeconfig="+p.path("pki/kwok.kubeconfig"), "--config="+p.path("stages.yaml"),
		"--manage-all-nodes=true", "--node-lease-duration-seconds=40", "--node-port=0", "--server-address=",
	)
}
