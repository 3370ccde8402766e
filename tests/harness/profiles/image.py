"""Manually written expectations for the image of worker.yaml: what it must and must not have."""

from harness.profiles import lab

# Files: mode, and content; None where another test knows it.
FILES = {
    "/etc/bootstrap-complete": (0o644, ""),
    "/etc/containerd/certs.d/docker.io/hosts.toml": (0o600, None),
    "/etc/containerd/config.toml": (0o600, """version = 2

[plugins."io.containerd.grpc.v1.cri"]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"""),
    "/etc/crictl.yaml": (0o644, "runtime-endpoint: unix:///run/containerd/containerd.sock\ntimeout: 10"),
    "/etc/environment": (0o644, "no_proxy=.svc,.cluster.local,localhost,127.0.0.1\n"),
    "/etc/modules-load.d/worker.conf": (0o644, "br_netfilter\noverlay"),
    "/etc/profile.d/worker.sh": (0o644, 'PATH="/opt/bin:$PATH"'),
    "/etc/sysctl.d/70-worker.conf": (
        0o644, "kernel.panic = 10\nnet.bridge.bridge-nf-call-iptables = 1\nnet.ipv4.ip_forward = 1\nvm.overcommit_memory = 1\n"),
    "/etc/systemd/system/containerd.service.d/10-limits.conf": (0o644, "[Service]\nEnvironmentFile=-/etc/environment\nLimitNOFILE=524288\n"),
    # Without settings, as no machine has told any.
    "/etc/systemd/system/kubelet.service": (0o600, """[Unit]
Description=Kubernetes node agent
After=containerd.service network-online.target
Wants=containerd.service network-online.target

[Service]
Restart=always
RestartSec=5
Environment="PATH=/opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
EnvironmentFile=-/etc/environment
EnvironmentFile=-/etc/kubernetes/node.env
ExecStartPre=/usr/local/sbin/describe-node
ExecStart=/opt/bin/kubelet \\
    --bootstrap-kubeconfig=/etc/kubernetes/bootstrap.kubeconfig \\
    --kubeconfig=/var/lib/kubelet/kubeconfig \\
    --config=/etc/kubernetes/kubelet.yaml \\
    --cert-dir=/var/lib/kubelet/pki \\
    --hostname-override=${NODE_NAME} \\
    --container-runtime-endpoint=unix:///run/containerd/containerd.sock \\
    --node-ip ${NODE_ADDRESS}

[Install]
WantedBy=multi-user.target
"""),
    "/etc/systemd/system/kubelet-watch.service": (0o644, None),
    "/usr/local/sbin/describe-node": (0o755, None),
    "/usr/local/sbin/watch-kubelet": (0o755, None),
    "/opt/bin/crictl": (0o755, lab.stand_in("crictl", "amd64").decode()),
    f"/opt/bin/kubernetes-{lab.KUBERNETES}/kubectl": (0o755, lab.stand_in("kubectl", "amd64").decode()),
    f"/opt/bin/kubernetes-{lab.KUBERNETES}/kubelet": (0o755, lab.kubelet("amd64").decode()),
    **{f"/opt/cni/bin/{name}": (0o755, lab.stand_in(name, "amd64").decode()) for name in lab.PLUGINS},
    # Of packages that its scripts install.
    "/usr/bin/containerd": (0o755, None),
    "/usr/bin/jq": (0o755, None),
    "/usr/sbin/conntrack": (0o755, None),
}
# Files that keep the archive's owners, as with tar by root without --no-same-owner.
OWNERS = {"/opt/bin/crictl": (1001, 118)}
LINKS = {
    "/opt/bin/kubectl": f"/opt/bin/kubernetes-{lab.KUBERNETES}/kubectl",
    "/opt/bin/kubelet": f"/opt/bin/kubernetes-{lab.KUBERNETES}/kubelet",
    "/usr/local/bin/crictl": "/opt/bin/crictl",
    "/etc/systemd/system/multi-user.target.wants/containerd.service": "/usr/lib/systemd/system/containerd.service",
}
DIRECTORIES = {"/etc/cni/net.d": 0o755, "/etc/kubernetes": 0o755, "/etc/kubernetes/manifests": 0o755, "/etc/kubernetes/pki": 0o755}
# What has done its work, what only a machine has, and what would keep cloud-init from bringing that.
ABSENT = [
    "/etc/apt/apt.conf.d/60proxy",
    "/etc/cloud/cloud-init.disabled",
    "/etc/cloud/cloud.cfg.d/pool-kube-system-provisioning-config.cfg",
    "/etc/kubernetes/bootstrap.kubeconfig",
    "/etc/kubernetes/node.env",
    "/etc/systemd/system/fetch-provisioning.service",
    "/etc/systemd/system/set-up.service",
    f"/opt/bin/kubernetes-{lab.KUBERNETES}/SHA256SUMS",
    f"/opt/bin/crictl-{lab.CRICTL}-linux-amd64.tar.gz",
    f"/opt/cni/bin/cni-plugins-linux-amd64-{lab.CNI}.tgz",
    "/usr/local/sbin/fetch-provisioning",
    "/usr/local/sbin/keep-trying",
    "/usr/local/sbin/set-up",
    # Its machines start what they are told to start when they have their settings.
    "/etc/systemd/system/multi-user.target.wants/fetch-provisioning.service",
    "/etc/systemd/system/multi-user.target.wants/set-up.service",
]
# Folders whose files must not have words of the first phase in them.
OWN = ("/etc/kubernetes/", "/etc/systemd/system/", "/etc/cloud/", "/usr/local/", "/opt/bin/", "/etc/environment")
WORDS = ("Authorization: Bearer", "cloud-init-settings", "apt-get install")
