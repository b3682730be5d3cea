package main

import (
	"fmt"
)

// The programs, by the names of their files and their logs.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// startEtcd listens on a socket in the directory, where nobody else may look, and takes no port.
func (p *plane) startEtcd() error {
	client, peer := "unix://"+etcdSocket, "unix://"+peerSocket
	err := p.group.start(etcd,
		"--name=plane", "--data-dir=etcd",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=plane="+peer,
		// What it stores is thrown away: there is nothing to bring safely to a disk.
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
		return p.api.answers("/readyz") && p.api.answers("/api/v1/namespaces/default")
	})
}

// startOthers starts everything that talks to the API server at once, and waits for what only a controller does (every
// pod needs the account), and until pods may be bound to the node.
func (p *plane) startOthers() error {
	for _, start := range []func() error{p.startControllers, p.startScheduler, p.startKwok} {
		if err := start(); err != nil {
			return err
		}
	}
	created := false
	err := p.group.await(controllerManager, "the default service account", controllerMax, func() bool {
		created = created || p.api.create("/api/v1/nodes", newNode())
		return created && p.api.answers("/api/v1/namespaces/default/serviceaccounts/default")
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
		// By default it holds itself back for seconds while it makes an account for each controller.
		"--kube-api-qps=500", "--kube-api-burst=1000",
		// A deletion that it hears of before the count of the creation stays counted until it counts everything anew,
		// by default after five minutes.
		"--resource-quota-sync-period=10s",
	)
}

func (p *plane) startScheduler() error {
	kubeconfig := "--kubeconfig=" + p.path("pki/"+scheduler+".kubeconfig")
	return p.group.start(scheduler, kubeconfig, "--secure-port=0", "--leader-elect=false")
}

// startKwok stands for every node's machine. It listens nowhere.
func (p *plane) startKwok() error {
	return p.group.start(kwok,
		"--kubeconfig="+p.path("pki/kwok.kubeconfig"), "--config="+p.path("stages.yaml"),
		"--manage-all-nodes=true", "--node-lease-duration-seconds=40", "--node-port=0", "--server-address=",
	)
}
