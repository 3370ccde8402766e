#!/bin/bash
# firstboot.sh ROOT: the work of `firstboot configure` for a control plane node on a self-managed machine,
# as a shell script. Baseline of firstboot.py, which compares both results.
set -euo pipefail
root=$1 pause=registry.k8s.io/pause:3.10.1
umask 077
etc=$root/opt/podplane/etc

# put MODE OWNER GROUP PATH: a whole file from standard input, seen only when it is complete.
put() {
    [ -d "$root${4%/*}" ] || install -d -m 0755 "$root${4%/*}"
    install -m "$1" -o "$2" -g "$3" /dev/stdin "$root$4.new"
    mv "$root$4.new" "$root$4"
}
# environment NAME…: lines with the values of variables.
environment() {
    local name
    local quote="'\"'\"'"
    for name; do
        local value=${!name-}
        printf "%s='%s'\n" "$name" "${value//\'/$quote}"
    done
}
directories() {
    local mode owner group path
    while read -r mode owner group path; do
        install -d -m "$mode" -o "$owner" -g "$group" "$root$path"
    done <"$root/directories"
}
kubeconfig() {
    cat <<END
apiVersion: v1
kind: Config
clusters:
  - name: podplane
    cluster:
      certificate-authority: /opt/crt/ca.crt
      server: "https://kube-apiserver.podplane.internal:6443"
users:
  - name: "$1"
    user:
      client-certificate: "/opt/crt/$1.client.crt"
      client-key: "/opt/key/$1/$1.client.key"
contexts:
  - name: podplane
    context:
      cluster: podplane
      user: "$1"
current-context: podplane
END
}

# 1. What others wrote, and once what the machine is.
set -a
. "$root/opt/podplane/share/defaults/mutable.env"
defaults=$(sed 's/=.*//' "$root/opt/podplane/share/defaults/mutable.env")
. "$etc/user-data.env"
if [ ! -e "$root/opt/podplane/bootstrap.done" ]; then
    VMCONFIG_KIND=knc VMCONFIG_BASE_KIND=node
    INSTANCE_PROVIDER_ID=$(cat "$root/var/lib/cloud/data/instance-id")
    INSTANCE_NETDEV=$(awk '$2 == "00000000" && $8 == "00000000" {print $1; exit}' "$root/proc/net/route")
    INSTANCE_IPV4=$(awk '$1 == "|--" {address = $2} /32 host LOCAL/ && address !~ /^127/ {print address; exit}' "$root/proc/net/fib_trie")
    INSTANCE_IPV6=$(awk -v device="$INSTANCE_NETDEV" '$6 == device && $4 == "00" {print $1; exit}' "$root/proc/net/if_inet6" |
        sed 's/..../&:/g; s/:$//; s/:0000/:0/g; s/:0*\([0-9a-f]\)/:\1/g; s/\(:0\)\{2,\}/:/; s/^0*//')
    INSTANCE_HOSTNAME=$(cat "$root/proc/sys/kernel/hostname")
    INSTANCE_FQDN=$INSTANCE_HOSTNAME.$(awk '$1 == "search" {print $2}' "$root/etc/resolv.conf")
    environment VMCONFIG_{KIND,BASE_KIND} INSTANCE_{PROVIDER_ID,NETDEV,IPV4,IPV6,HOSTNAME,FQDN} | put 0600 root root /opt/podplane/etc/detected.env
    # shellcheck disable=SC2086 # one word for each variable
    environment $defaults | sort | put 0600 root root /opt/podplane/etc/mutable.env
    put 0600 root root /opt/podplane/bootstrap.done </dev/null
fi
. "$etc/detected.env"
. "$etc/mutable.env"
set +a
: "${KUBE_SERVICE_CLUSTER_IP_RANGE:=198.18.0.0/15,fdc6::/108}" "${KUBE_CLUSTER_CIDR:=100.64.0.0/10,fd64::/48}"
: "${KUBE_NODE_CIDR_MASK_SIZE_IPV4:=24}" "${KUBE_NODE_CIDR_MASK_SIZE_IPV6:=64}" "${OIDC_SIGNING_ALGS:=RS256}" "${NETSY_KEY_PREFIX:=}"
: "${KUBE_CLUSTER_DNS:=198.19.255.254,fdc6::ffff}" "${KUBE_LOG_LEVEL:=2}" "${KUBE_API_ETCD_SERVERS:=https://127.0.0.1:2378}"
[ "$PROVIDER_KIND" = local ] || { echo "unknown PROVIDER_KIND" >&2; exit 1; }
for boolean in TELEMETRY_ENABLED TELEMETRY_LOG_CLOUDINIT REGISTRY_ENABLED; do
    [[ ${!boolean} =~ ^(true|false)$ ]] || { echo "$boolean is neither true nor false" >&2; exit 1; }
done

# 2. Directories, and the files of each service.
directories
base64 -d <<<"$NSTANCE_CA_CERT" | put 0600 nstance-agent nstance-agent /opt/nstance-agent/identity/ca.crt
chown nstance-agent:nstance-agent "$root/opt/nstance-agent/identity/nonce.jwt"
chmod 0600 "$root/opt/nstance-agent/identity/nonce.jwt"
agent=/opt/nstance-agent
NSTANCE_IDENTITY_DIR=$agent/identity NSTANCE_KEYS_DIR=$agent/keys NSTANCE_RECV_DIR=$agent/recv
NSTANCE_IDENTITY_MODE=0600 NSTANCE_KEYS_MODE=0640 NSTANCE_RECV_MODE=0600 NSTANCE_REPORT_INTERVAL=60s NSTANCE_SPOT_POLL_INTERVAL=2s
NSTANCE_INSTANCE_KIND=$VMCONFIG_KIND NSTANCE_INSTANCE_ID=$INSTANCE_ID NSTANCE_INSTANCE_HOSTNAME=$INSTANCE_HOSTNAME
NSTANCE_INSTANCE_FQDN=$INSTANCE_FQDN NSTANCE_INSTANCE_IPV4=$INSTANCE_IPV4 NSTANCE_INSTANCE_IPV6=$INSTANCE_IPV6
environment NSTANCE_SERVER_{REGISTRATION,AGENT}_ADDR NSTANCE_{IDENTITY,KEYS,RECV}_DIR NSTANCE_{IDENTITY,KEYS,RECV}_MODE \
    NSTANCE_INSTANCE_{KIND,ID,HOSTNAME,FQDN,IPV4,IPV6} NSTANCE_REPORT_INTERVAL NSTANCE_SPOT_POLL_INTERVAL |
    put 0640 root nstance-agent /opt/env/nstance-agent.env
environment PROVIDER_{INSTANCE_TYPE,REGION,ZONE} INSTANCE_{IPV4,IPV6,ID,PROVIDER_ID} | put 0600 root root /opt/env/kubelet.env
AWS_REGION=$PROVIDER_REGION
environment AWS_REGION INSTANCE_IPV4 INSTANCE_ID | put 0640 root kube2iam /opt/env/kube2iam.env
for service in kubelet kube2iam kube-controller-manager kube-scheduler; do
    kubeconfig $service | put 0644 root root /opt/$service/etc/kubeconfig
done
for file in subuid subgid; do
    put 0644 root root /etc/$file <<<kubelet:65536:7208960
done
kubelet_yaml() {
    local inside=
    while IFS= read -r line; do
        case $line in
        '{% for'*) inside=yes ;;
        '{% endfor'*) inside= ;;
        *) [ -n "$inside" ] && printf '  - "%s"\n' ${KUBE_CLUSTER_DNS//,/ } || printf '%s\n' "$line" ;;
        esac
    done <"$root/opt/podplane/share/templates/kubelet.yaml"
}
kubelet_yaml | put 0644 root root /opt/kubelet/etc/kubelet.yaml
environment KUBE_LOG_LEVEL KUBE_API_PUBLIC_HOSTNAME KUBE_SERVICE_ACCOUNT_ISSUER KUBE_API_ETCD_SERVERS KUBE_SERVICE_CLUSTER_IP_RANGE OIDC_ISSUER \
    OIDC_SIGNING_ALGS CLUSTER_ID OIDC_CA_FILE | put 0640 root kube-apiserver /opt/env/kube-apiserver.env
environment KUBE_LOG_LEVEL KUBE_CLUSTER_CIDR KUBE_NODE_CIDR_MASK_SIZE_IPV{4,6} KUBE_SERVICE_CLUSTER_IP_RANGE |
    put 0640 root kube-controller-manager /opt/env/kube-controller-manager.env

if [ "$TELEMETRY_ENABLED" = true ]; then
    {
        environment CLUSTER_ID INSTANCE_ID TELEMETRY_{ENABLED,LOG_SERVICES}
        echo "TELEMETRY_LOG_CLOUDINIT=$TELEMETRY_LOG_CLOUDINIT"
        environment TELEMETRY_S3_{BUCKET,ENDPOINT,REGION,ASSUME_ROLE,ACCESS_KEY_ID,SECRET_ACCESS_KEY} \
            TELEMETRY_OTLP_{ENDPOINT,HOST,PORT,LOGS_URI,TLS}
    } | put 0640 root fluent-bit /opt/env/fluent-bit.env
    install -d -m 0700 -o fluent-bit -g fluent-bit "$root/opt/fluent-bit/etc"
    {
        cat <<END
service:
  flush: 1
  log_level: info
  http_server: off
  storage.path: /var/lib/fluent-bit/storage
  storage.sync: full
  storage.checksum: on
  storage.backlog.mem_limit: 64M
  storage.metrics: off

pipeline:
  inputs:
    - name: systemd
      tag: systemd.*
      db: /var/lib/fluent-bit/systemd.db
      db.sync: full
      storage.type: filesystem
      read_from_tail: off
      # Of these units, any.
      systemd_filter_type: or
      systemd_filter:
END
        for service in ${TELEMETRY_LOG_SERVICES//,/ }; do
            echo "        - \"_SYSTEMD_UNIT=$service.service\""
        done
        cat <<END
    - name: tail
      tag: cloudinit.*
      path: /var/log/cloud-init.log
      db: /var/lib/fluent-bit/cloud-init.db
      db.sync: full
      storage.type: filesystem
      read_from_head: on
      refresh_interval: 30

  # The names that OpenTelemetry has for what the inputs say.
  filters:
    - name: modify
      match: systemd.*
      rename:
        - _HOSTNAME host.name
        - MESSAGE body
        - SYSLOG_IDENTIFIER log.source
      add: log.format otlp
    - name: modify
      match: cloudinit.*
      rename: log body
      add:
        - log.source cloud-init
        - log.format otlp

  outputs:
    - name: s3
      match: "*"
      bucket: "$TELEMETRY_S3_BUCKET"
      region: "$TELEMETRY_S3_REGION"
      endpoint: "$TELEMETRY_S3_ENDPOINT"
      use_put_object: on
      json_date_key: date
      json_date_format: iso8601
      retry_limit: no_limits
      # A file ends when it is full or old enough.
      total_file_size: 100M
      upload_timeout: 1m
      compression: gzip
      s3_key_format: /logs/%Y-%m-%d/%H/%H-%M-%S_\$INDEX_\$UUID.json.gz
      store_dir: /var/lib/fluent-bit/s3
END
    } | put 0600 fluent-bit fluent-bit /opt/fluent-bit/etc/fluent-bit.yml
fi

mirror=
environment CLUSTER_ID INSTANCE_ID PROVIDER_KIND REGISTRY_{ENABLED,HOSTNAME,BUCKET,ENDPOINT,REGION,ASSUME_ROLE} \
    REGISTRY_{ACCESS_KEY_ID,SECRET_ACCESS_KEY} AWS_S3_USE_PATH_STYLE | put 0640 root zot /opt/env/zot.env
if [ "$REGISTRY_ENABLED" = true ]; then
    mirror=$REGISTRY_HOSTNAME/mirror/
    put 0640 root zot /opt/zot/etc/zot.yml <<END
distSpecVersion: 1.1.0
storage:
  rootDirectory: /opt/zot/storage
  # Every node serves the same bucket: it keeps nothing locally, and does not clean up the bucket.
  dedupe: false
  remoteCache: false
  gc: false
  storageDriver:
    name: s3
    rootdirectory: /
    region: "$REGISTRY_REGION"
    bucket: "$REGISTRY_BUCKET"
    regionendpoint: "$REGISTRY_ENDPOINT"
    secure: false
    skipverify: false
http:
  # Joined with the port as it is.
  address: "[::1]"
  port: "5000"
  tls:
    cert: /opt/crt/registry.server.crt
    key: /opt/key/registry/registry.server.key
    cacert: /opt/crt/ca.crt
  auth:
    mtls:
      identityAttributes:
        - CommonName
  accessControl:
    repositories:
      "**":
        policies:
          - users:
              - containerd.client
            actions:
              - read
log:
  level: info
END
    put 0644 root root "/etc/containerd/certs.d/$REGISTRY_HOSTNAME/hosts.toml" <<END
[host."https://[::1]:5000"]
capabilities = ["pull", "resolve"]
ca = "/opt/crt/ca.crt"
client = [["/opt/crt/containerd.client.crt", "/opt/key/containerd/containerd.client.key"]]
END
fi
put 0644 root root /etc/containerd/config.toml <<END
version = 3
oom_score = -999

[grpc]
# The group containerd, which the kubelet is in.
gid = 904

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "$mirror$pause"

[plugins.'io.containerd.cri.v1.images'.registry]
config_path = "/etc/containerd/certs.d"

[plugins.'io.containerd.cri.v1.runtime'.containerd]
default_runtime_name = "runc"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = "/usr/local/sbin/runc"
SystemdCgroup = true
END

NETSY_CONFIG=/opt/netsy/etc/cluster.jsonc NETSY_NODE_ID=$INSTANCE_ID NETSY_DATA_DIR=/opt/data
NETSY_BIND_CLIENT=:2378 NETSY_ADVERTISE_CLIENT=$INSTANCE_IPV4:2378 NETSY_BIND_PEER=:2381 NETSY_ADVERTISE_PEER=$INSTANCE_IPV4:2381
NETSY_BIND_ELECTION=:8443 NETSY_ADVERTISE_ELECTION=$INSTANCE_IPV4:8443 NETSY_BIND_HEALTH=:8080 NETSY_TLS_CA_CERT=/opt/crt/ca.crt
NETSY_TLS_SERVER_CERT=/opt/crt/netsy.server.crt NETSY_TLS_SERVER_KEY=/opt/key/netsy/netsy.server.key
NETSY_TLS_CLIENT_CERT=/opt/crt/netsy.client.crt NETSY_TLS_CLIENT_KEY=/opt/key/netsy/netsy.client.key
AWS_DEFAULT_REGION=$NETSY_REGION AWS_ENDPOINT_URL=$NETSY_ENDPOINT AWS_ACCESS_KEY_ID=$NETSY_ACCESS_KEY_ID
AWS_SECRET_ACCESS_KEY=$NETSY_SECRET_ACCESS_KEY AWS_S3_USE_PATH_STYLE=true
environment NETSY_{CONFIG,NODE_ID} NETSY_{BIND,ADVERTISE}_CLIENT NETSY_{BIND,ADVERTISE}_PEER NETSY_{BIND,ADVERTISE}_ELECTION \
    NETSY_BIND_HEALTH NETSY_TLS_CA_CERT NETSY_TLS_{SERVER,CLIENT}_{CERT,KEY} NETSY_DATA_DIR AWS_DEFAULT_REGION AWS_ENDPOINT_URL \
    AWS_{ACCESS_KEY_ID,SECRET_ACCESS_KEY,S3_USE_PATH_STYLE} | put 0640 root netsy /opt/env/netsy.env
put 0640 root netsy /opt/netsy/etc/cluster.jsonc <<END
{
  "cluster_id": "$CLUSTER_ID",
  "storage": {
    "provider": "s3",
    "bucket_name": "$NETSY_BUCKET",
    "key_prefix": "$NETSY_KEY_PREFIX",
    "class": "STANDARD",
    "encryption": "provider-managed"
  },
  "heartbeat_interval": "1s",
  "elector": {
    "degradation_count": 2,
    "deregistration_timeout": "3m",
    "primary_prior_timeout": "5s"
  },
  "replication": {
    // A majority.
    "quorum": -1,
    "degradation_count": 2,
    "chunk_buffer": {
      "threshold_size_mb": 4,
      "threshold_age_minutes": 1
    }
  },
  "snapshot": {
    "threshold_records": 10000,
    "threshold_size_mb": 10000,
    // However old it is.
    "threshold_age_minutes": 0
  },
  "compaction_interval": "5m"
}
END

# 3. Names and people.
{
    sed '/^# BEGIN podplane$/,/^# END podplane$/d' "$root/etc/hosts"
    printf '# BEGIN podplane\n127.0.0.1 kube-apiserver.podplane.internal\n# END podplane\n'
} | put 0644 root root /etc/hosts
printf '%s\n%s\n' "$IMMUTABLE_SSH_AUTHORIZED_KEYS" "$SSH_AUTHORIZED_KEYS" | awk 'NF && !seen[$0]++' >"$root/keys"
if [ -s "$root/keys" ]; then
    echo "keys are not part of the measure" >&2
    exit 1
fi
rm -f "$root/home/admin/.ssh/authorized_keys" "$root/etc/sudoers.d/admin" "$root/keys"
