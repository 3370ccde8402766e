# A node of the control plane before anybody configures it: what the layers enable is up, or waits for its certificates.
#
# boot: grow 1G

# waits: the unit was started, and did nothing because what it needs is not there.
waits() {
    [ "$(systemctl is-active "$1")" = inactive ] && [ "$(systemctl show -P ConditionResult "$1")" = no ]
}
imported() {
    timeout 120 systemctl start container-images.service && ctr -n k8s.io images list -q | grep -q '^registry.k8s.io/pause:'
}
# reads USER FILE: the user of a service gets through the directories to what the service needs.
reads() { setpriv --reuid "$1" --regid "$1" --init-groups cat "$2" >/dev/null; }

machine
check install /opt/podplane/bin/install.sh
check containerd systemctl is-active containerd.service
check images imported
check crictl test -x /usr/local/bin/crictl
for unit in kubelet kube-apiserver kube-controller-manager kube-scheduler netsy nstance-agent; do
    check "$unit" waits "$unit.service"
done
check recv-watch systemctl is-active nstance-recv-watch.path
check hosts-refresh systemctl is-active hosts-refresh.timer
for unit in fluent-bit zot kube2iam; do
    check "$unit" [ "$(systemctl is-enabled "$unit.service")" = disabled ]
done
check scheduler-config reads kube-scheduler /opt/kube-scheduler/etc/kube-scheduler.yaml
check libraries sh -c 'ldconfig -p | grep -q libpq.so.5 && ldconfig -p | grep -q libsubid.so.5'
