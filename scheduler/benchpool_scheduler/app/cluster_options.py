"""Settings of the process on a cluster, and the runtime settings derived from them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import traitlets
from traitlets.config import Configurable

from benchpool_scheduler.app.serving import cookie_secret
from benchpool_scheduler.app.settings import variable
from benchpool_scheduler.errors import InvalidInput
from benchpool_scheduler.runtime.kubernetes import ClusterSettings
from benchpool_scheduler.runtime.kubernetes.admitted.namespaces import (
    AdmittedNamespace,
    read_namespaces,
)
from benchpool_scheduler.service import DefaultAmounts

SECRET_BYTES = 32
EVERY_IPV4, EVERY_IPV6 = "0.0.0.0", "::"  # noqa: S104 (of a pod, which only the scheduler reaches)


class ClusterOptions(Configurable):
    """Cluster options. Each has an environment variable, and a settings file overrides it."""

    namespace = traitlets.Unicode(
        "", help="Namespace of jobs, leases and workers; by default that of the kubeconfig or pod."
    ).tag(config=True, env="BENCHPOOL_NAMESPACE")
    own_namespace = traitlets.Unicode(
        "", help="Namespace of the scheduler itself, where replicas elect their leader."
    ).tag(config=True, env="BENCHPOOL_RELEASE_NAMESPACE")
    kubeconfig = traitlets.Unicode(
        "",
        help="Kubeconfig file with the address of the API server; by default the pod's own "
        "account.",
    ).tag(config=True, env="BENCHPOOL_KUBECONFIG")
    pod_name = traitlets.Unicode("", help="Name of this replica.").tag(
        config=True, env="BENCHPOOL_POD_NAME"
    )
    pod_ip = traitlets.Unicode("", help="Address of this replica for other replicas.").tag(
        config=True, env="BENCHPOOL_POD_IP"
    )
    pod_labels = traitlets.Unicode(
        "",
        help="Labels of the scheduler's pods only, as NAME=VALUE, separated by commas; only pods "
        "with them may connect to the ports of services. Without them, all clients that reach the "
        "pods of jobs also reach services.",
    ).tag(config=True, env="BENCHPOOL_POD_LABELS")
    objects = traitlets.Unicode(
        "", help="Storage of uploaded code, as an fsspec URL; by default in the state folder."
    ).tag(config=True, env="BENCHPOOL_OBJECTS")
    image = traitlets.Unicode("", help="Image of jobs without their own.").tag(
        config=True, env="BENCHPOOL_DEFAULT_IMAGE"
    )
    agent_image = traitlets.Unicode("", help="Image that holds the agent of workers.").tag(
        config=True, env="BENCHPOOL_JOB_IMAGE"
    )
    pull_policy = traitlets.Enum(
        ("IfNotPresent", "Always", "Never"), "IfNotPresent", help="Pull policy of images."
    ).tag(config=True, env="BENCHPOOL_IMAGE_PULL_POLICY")
    pull_secrets = traitlets.Unicode(
        "", help="Names of secrets for pulling images, separated by commas."
    ).tag(config=True, env="BENCHPOOL_IMAGE_PULL_SECRETS")
    url_for_workers = traitlets.Unicode(
        "", help="Address of this service for workers, with its prefix."
    ).tag(config=True, env="BENCHPOOL_URL_FOR_WORKERS")
    home_path = traitlets.Unicode(
        "/home/jovyan", help="Mount path of the home volume in notebooks and jobs."
    ).tag(config=True, env="BENCHPOOL_HOME_PATH")
    tolerated = traitlets.Unicode(
        "nvidia.com/gpu", help="Keys of taints that workers tolerate, separated by commas."
    ).tag(config=True, env="BENCHPOOL_TOLERATIONS")
    cpus_per_gpu = traitlets.Float(
        0.0,
        min=0.0,
        help="Cores for each GPU of a worker whose job requests none; 0 requests none.",
    ).tag(config=True, env="BENCHPOOL_CPUS_PER_GPU")
    memory_gib_per_gpu = traitlets.Float(
        0.0, min=0.0, help="GiB for each GPU of a worker whose job requests none; 0 requests none."
    ).tag(config=True, env="BENCHPOOL_MEMORY_GIB_PER_GPU")
    cpu_limit = traitlets.Float(
        0.0, min=0.0, help="Limit of a worker's cores, as a multiple of its request; 0 for none."
    ).tag(config=True, env="BENCHPOOL_CPU_LIMIT")
    priority_class = traitlets.Unicode("", help="Priority class of workers.").tag(
        config=True, env="BENCHPOOL_PRIORITY_CLASS"
    )
    admitted_namespaces = traitlets.Unicode(
        "",
        help="Namespaces whose pods get their GPUs from this pool, as JSON: a list of name, "
        "project, user and projects.",
    ).tag(config=True, env="BENCHPOOL_ADMITTED_NAMESPACES")
    prometheus = traitlets.Unicode(
        "",
        help="Address of Prometheus that reads dcgm-exporter, or of one exporter's page, ending "
        "with /metrics; without it, GPU use is not measured.",
    ).tag(config=True, env="BENCHPOOL_PROMETHEUS")
    telemetry_database = traitlets.Unicode(
        "",
        help="Database of GPU measurements, postgresql+psycopg2://USER:PASSWORD@HOST/DATABASE; by "
        "default a file in the state folder.",
    ).tag(config=True, env="BENCHPOOL_TELEMETRY_DATABASE")
    node_agent = traitlets.Unicode(
        "",
        help="Account of the node agents that report GPU and worker use, "
        "system:serviceaccount:NAMESPACE:NAME; without it, no agents are expected.",
    ).tag(config=True, env="BENCHPOOL_NODE_AGENT")
    copies = traitlets.Unicode(
        "", help="CronJobs of its own namespace that copy volumes, separated by commas."
    ).tag(config=True, env="BENCHPOOL_COPIES")
    release = traitlets.Unicode("", help="Name of the Helm release.").tag(
        config=True, env="BENCHPOOL_RELEASE"
    )
    server_secret = traitlets.Unicode(
        "",
        help="Secret of at least 32 characters, the same in every replica; by default created in "
        "the state folder.",
    ).tag(config=True, env="BENCHPOOL_SERVER_SECRET")
    lease_s = traitlets.Float(
        15.0,
        min=1.0,
        help="Time without a sign of life after which a leader is replaced, in seconds.",
    ).tag(config=True, env="BENCHPOOL_LEADER_LEASE_S")

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        set_already = {*given, *self.config.get(type(self).__name__, {})}
        for name, trait in self.traits(env=lambda env: env is not None).items():
            text = variable(trait.metadata["env"])
            if text and name not in set_already:
                setattr(self, name, _read(trait, text))

    def runtime(self, namespace: str) -> ClusterSettings:
        """Return the settings of workers. Errors: InvalidInput for a missing required setting."""
        for name in ("image", "agent_image", "url_for_workers"):
            if not getattr(self, name):
                needed = self.traits()[name].metadata["env"]
                raise InvalidInput(
                    f"{needed} is not set; workers cannot be started without it.", field=name
                )
        return ClusterSettings(
            namespace=namespace,
            image=self.image,
            agent_image=self.agent_image,
            agent_url=f"{self.url_for_workers.rstrip('/')}/workers",
            pull_policy=self.pull_policy,
            cpu_limit=self.cpu_limit,
            priority_class=self.priority_class,
            pull_secrets=tuple(_words(self.pull_secrets)),
            scheduler_namespace=self.own_namespace or namespace,
            scheduler_labels=dict(_pair(word) for word in _words(self.pod_labels)),
            listen=EVERY_IPV6 if ":" in self.pod_ip else EVERY_IPV4,
            tolerations=tuple({"key": key, "operator": "Exists"} for key in _words(self.tolerated)),
            admitted_namespaces=self._admitted(namespace),
        )

    def _admitted(self, namespace: str) -> tuple[AdmittedNamespace, ...]:
        found = read_namespaces(self.admitted_namespaces)
        if any(one.name == namespace for one in found):
            raise InvalidInput(
                f"The namespace {namespace} is that of notebooks and jobs. Other pods are not "
                "admitted there. List another one.",
                field="admitted_namespaces",
            )
        return found

    @property
    def default_amounts(self) -> DefaultAmounts:
        """Default resources of workers whose job names none."""
        return DefaultAmounts(self.cpus_per_gpu, self.memory_gib_per_gpu)

    @property
    def copying(self) -> tuple[str, ...]:
        """CronJobs that copy the data outside the API server."""
        return tuple(_words(self.copies))

    def secret(self, state: Path) -> bytes:
        """Return the secret that authenticates agents and sessions. Errors: InvalidInput."""
        if not self.server_secret:
            return cookie_secret(state / "scheduler" / "server-secret")
        found = self.server_secret.encode()
        if len(found) < SECRET_BYTES:
            raise InvalidInput(
                f"BENCHPOOL_SERVER_SECRET has {len(found)} bytes; it needs {SECRET_BYTES}.",
                field="server_secret",
                numbers={"bytes": len(found), "limit": SECRET_BYTES},
            )
        return found


def own_name(options: ClusterOptions) -> str:
    """Return the unique name of this replica in elections."""
    return f"{options.pod_name or 'scheduler'}-{secrets.token_hex(4)}"


def _read(trait: Any, text: str) -> Any:
    return float(text) if isinstance(trait, traitlets.Float) else text


def _pair(label: str) -> tuple[str, str]:
    """Return name and value of a label. Errors: InvalidInput if either is missing."""
    name, equals, value = label.partition("=")
    if not (name and equals and value):
        raise InvalidInput(
            f"BENCHPOOL_POD_LABELS has {label!r}; write NAME=VALUE, separated by commas.",
            field="pod_labels",
        )
    return name, value


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]
