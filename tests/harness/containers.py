"""Checks of containerd on a node without network, in a booted machine in qemu (vm.py)."""

# Only images that were baked in can run.
SANDBOX = """set -e
image=$(ctr --namespace k8s.io images list --quiet | grep '^registry.k8s.io/pause:')
ctr --namespace k8s.io run --detach "$image" sandbox
ctr --namespace k8s.io tasks list
ctr --namespace k8s.io tasks list | grep -q '^sandbox .*RUNNING'
ctr --namespace k8s.io tasks kill --signal SIGKILL sandbox
until ctr --namespace k8s.io tasks list | grep -q '^sandbox .*STOPPED'; do sleep 0.2; done
ctr --namespace k8s.io tasks delete sandbox || test $? = 137
ctr --namespace k8s.io containers delete sandbox
"""
# A root file system of one program of the machine and its libraries.
PROGRAM = """set -e
root=/var/lib/vmbake-test
for file in /usr/bin/echo $(ldd /usr/bin/echo | grep -o '/[^ ]*'); do install -D "$file" "$root$file"; done
said=$(ctr run --rm --rootfs "$root" program /usr/bin/echo hello-from-container 2>&1)
echo "$said"
test "$said" = hello-from-container
rm -r "$root"
"""


def baked(node):
    """The image of pod sandboxes was imported, and runs; so does any other root file system."""
    code, said = node.shell("systemctl start container-images.service && ctr --namespace k8s.io images list")
    node.case("images: imported", code == 0 and "registry.k8s.io/pause:" in said, said)
    for name, script in (("containers: the pod sandbox", SANDBOX), ("containers: a program", PROGRAM)):
        code, said = node.shell(script)
        node.case(name, code == 0, said)
