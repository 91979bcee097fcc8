"""Notebook servers as pods of a Kubernetes cluster, with the same fixed quota of GPUs.

``BenchpoolKubeSpawner`` is KubeSpawner with all of its settings. A pod with GPUs carries the ID of
its lease and waits behind benchpool's scheduling gate until the scheduler has chosen its node:

    hook, profile -> GPUs of the pod -> lease, or queue position -> gated pod
                  -> final check just before creation -> created
"""

from __future__ import annotations

import asyncio
import copy
import json
import textwrap
import time
from collections.abc import Awaitable, Mapping
from typing import Any

from jupyterhub.utils import maybe_future
from kubernetes_asyncio.client.exceptions import ApiException
from kubespawner import KubeSpawner
from tornado.web import HTTPError
from traitlets import Integer, List, Unicode, default

from benchpool_scheduler.contract.kubernetes import GPU_RESOURCE, LEASE
from benchpool_scheduler.errors import BenchpoolError
from benchpool_spawner import form, kube_pods, kube_profiles, kube_words, options, refusal
from benchpool_spawner.kube_nodes import Nodes, check_nodes, nodes_of
from benchpool_spawner.kube_requests import (
    GpuRequest,
    GpuSettings,
    check_pod,
    check_ways_around,
    gpu_request_of,
    gpu_requests,
)
from benchpool_spawner.kube_watching import untiring
from benchpool_spawner.mixin import QuotaMixin, groups_of
from benchpool_spawner.refusal import StartRefused
from benchpool_spawner.steps import Steps

EVENTS_S = 0.3
"""Interval for reading a starting pod's events from the watch, in seconds."""

GONE_S = 600.0
"""Timeout for a lease's pod to disappear, in seconds. A lost machine never reports that."""

BEFORE_TIMEOUT_S = 1.0
"""Time before ``start_timeout`` at which a start reports what it waited for, in seconds."""


class BenchpoolKubeSpawner(QuotaMixin, KubeSpawner):  # type: ignore[misc]
    """KubeSpawner with a fixed quota of GPUs for each user."""

    gpus = Integer(
        None,
        allow_none=True,
        min=0,
        max=options.MOST_GPUS,
        help="""
        Number of GPUs of a server, if its user does not choose; for ``kubespawner_override`` of a
        profile. A request in ``extra_resource_limits`` has the same effect.
        """,
    ).tag(config=True)

    gpu_models = List(
        Unicode(),
        help="""
        GPU models of a server, best first; empty for any. For ``kubespawner_override`` of a
        profile.
        """,
    ).tag(config=True)

    gpu_resource = Unicode(
        GPU_RESOURCE,
        help="""
        Kubernetes resource of the GPUs of a server. A profile for slices of GPUs sets it to, for
        example, ``nvidia.com/mig-1g.10gb``.
        """,
    ).tag(config=True)

    gpu_resources = List(
        Unicode(),
        ["nvidia.com/*"],
        help="""
        Patterns of resources that are GPUs or parts of GPUs. No server gets them without a
        lease.
        """,
    ).tag(config=True)

    @default("scheduler_patience")
    def _default_scheduler_patience(self) -> float:
        return 60.0  # time that another scheduler replica may need to take over

    _gpu_request: GpuRequest = GpuRequest()
    _nodes: Nodes | None = None
    _loaded: Any = None
    """Options whose profile this start has applied."""
    _last_message: kube_words.StartMessage | None = None

    # ------------------------------------------------------------------ asking

    async def _render_form(self, spawner: Any) -> str:
        advice = await self.lease_client.advice(self.user.name)
        remembered, raw = self._remembered(), self._stored_options()
        profiles = await self._profiles()
        shown = form.model(
            self.user.name,
            advice,
            remembered,
            self._servers(),
            as_profile=not options.chooses_gpus(raw) if profiles else None,
            when_busy=self.when_busy,
        )
        ours = form.render(shown)
        if not profiles:
            return ours
        theirs = self._render_options_form(self._sorted_dict_values(profiles))
        return f"{theirs}\n{ours}"

    async def _profiles(self) -> Any:
        found = self.profile_list
        if not callable(found):
            return found
        try:
            return await maybe_future(found(self))
        except Exception as error:
            raise self._of_the_site(error) from error

    def _get_initialized_profile_list(self, profile_list: Any) -> Any:
        """Return the profiles that are open to the user, in KubeSpawner's form."""
        groups = frozenset(group.name for group in groups_of(self.user))
        try:
            mine = kube_profiles.open_to(self.user.name, groups, profile_list)
        except BenchpoolError as error:
            raise self._refused(refusal.from_error(error)) from error
        return super()._get_initialized_profile_list(mine)

    def _read_form(self, form_data: Mapping[str, object]) -> dict[str, object]:
        ours = self._parsed(options.parse_form, form_data)
        rest = {
            key: value for key, value in form_data.items() if key not in options.ours(form_data)
        }
        found: dict[str, object] = self._options_from_form(rest)
        found |= ours.as_user_options()
        if not options.chooses_gpus(form_data):
            found.pop("gpus", None)
        return found

    def options_from_query(self, query_data: Mapping[str, object]) -> dict[str, object]:
        """Read options from the address, as from the form."""
        return self._read_form(query_data)

    def _remembered(self) -> options.ServerOptions:
        try:
            return options.parse(options.ours(self._stored_options()))
        except BenchpoolError:
            return options.ServerOptions()

    async def run_pre_spawn_hook(self) -> None:
        """Run the administrator's hook, determine the pod's GPU request, and reserve it."""
        self._begin()
        self._gpu_request, self._nodes = GpuRequest(), None
        self._loaded, self._last_message, self._start_future = None, None, None
        raw = self._raw_options()
        asked = self._parsed(options.parse, options.ours(raw))
        # Calls KubeSpawner's own hook directly, past the mixin, because its changes count.
        await maybe_future(KubeSpawner.run_pre_spawn_hook(self))
        try:
            await self.load_user_options()
            self._loaded = copy.deepcopy(self.user_options)
            draft = kube_pods.draft(self)
            check_ways_around(draft)
            gpus = gpu_request_of(
                asked.gpus if options.chooses_gpus(raw) else None,
                asked.gpu_models,
                GpuSettings(self.gpus, self.gpu_resource, tuple(self.gpu_models)),
                gpu_requests(draft, self.gpu_resources),
            )
            nodes = nodes_of(draft.get("spec") or {}, leased=True)
        except BenchpoolError as error:
            raise self._refused(refusal.from_error(error)) from error
        await self._reserve_for(
            gpus.gpus,
            gpus.models,
            asked.when_busy,
            resource=gpus.resource,
            claim=kube_pods.home_claim(self),
            namespace=self.namespace,
            **nodes.as_request(),
        )
        if self._lease_gpus:
            self._gpu_request, self._nodes = gpus, nodes
        if not self.profile_list:
            # The admin page shows this key as the server's profile.
            shown = options.ServerOptions(len(self._lease_gpus), gpus.models)
            self.user_options = {**raw, "profile": form.profile(shown)}
            self._loaded = copy.deepcopy(self.user_options)

    def _raw_options(self) -> Mapping[str, object]:
        if not isinstance(self.user_options or {}, Mapping):
            raise self._refused(
                StartRefused(
                    'The options of a server must be an object. Send {"gpus": 1}, or nothing.',
                    reason="gpu-options",
                    status_code=400,
                )
            )
        return self.user_options or {}

    async def load_user_options(self) -> None:
        """Apply the profile once for the options of a start, and again for any other options.

        Raises:
            StartRefused: There is no such profile, it is not open to this user, or one of its
                settings fails.
        """
        if self._loaded is not None and self._loaded == self.user_options:
            return  # computed values of a profile are computed once for each start
        try:
            await super().load_user_options()
        except Exception as error:
            raise self._of_the_site(error) from error

    def _validate_user_options(self, profile_list: Any) -> None:
        """Refuse invalid choices of the user before any of them is applied."""
        try:
            super()._validate_user_options(profile_list)
            kube_profiles.check_choices(self.user_options or {}, profile_list)
        except (ValueError, KeyError, TypeError, AttributeError, BenchpoolError) as error:
            raise self._refused(kube_profiles.wrong_choice(error)) from error

    def _of_the_site(self, error: Exception) -> Exception:
        """Return the error that a user sees for a fault in an administrator's settings.

        Errors that are already readable (an ``HTTPError``, a refusal) stay unchanged.
        """
        if isinstance(error, HTTPError) or hasattr(error, "jupyterhub_message"):
            return error
        self.log.error("the server profiles fail for %s", self.user.name, exc_info=error)
        return self._refused(kube_profiles.site_fault(error))

    # ------------------------------------------------------------------ the pod

    async def get_pod_manifest(self) -> Any:
        """Return KubeSpawner's pod. With GPUs it has its lease and benchpool's gate."""
        pod = await super().get_pod_manifest()
        kube_pods.lease_to(pod, self._gpu_request, self._leased, self.user.name, self.gpu_resources)
        return pod

    @property
    def _leased(self) -> str | None:
        return self._lease_id if self._lease_gpus else None

    def get_env(self) -> dict[str, str]:
        """Return the server's environment: without GPUs it sees none, with GPUs only its own."""
        env = super().get_env()
        env.pop("NVIDIA_VISIBLE_DEVICES", None)
        if self._lease_gpus:
            # The kubelet selects the devices and sets the container's variables.
            env.pop("CUDA_VISIBLE_DEVICES", None)
        # Jobs from here run in the same image, and share the home if many pods may mount it.
        env["BENCHPOOL_IMAGE"] = str(self.image)
        env["BENCHPOOL_HOME"] = "shared" if kube_pods.jobs_share_home(self) else "own"
        return env

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> bool:
        """Create the pod if it still matches its lease. Translate refusals of the cluster."""
        as_sent = self.api.api_client.sanitize_for_serialization(pod)
        try:
            check_pod(as_sent, self._gpu_request, self._leased, self.gpu_resources)
            if self._leased is not None and self._nodes is not None:
                check_nodes(as_sent["spec"], self._nodes)
        except BenchpoolError as error:
            raise self._refused(refusal.from_error(error)) from error
        try:
            created: bool = await super()._make_create_pod_request(pod, request_timeout)
        except ApiException as failed:
            if failed.status not in (400, 403, 422):
                raise
            raise self._refused(_refused_by_cluster(failed)) from failed
        if created and self.steps is not None:
            self.steps.add("The pod is created", 32)
        return created

    # ------------------------------------------------------------------ starting

    def start(self) -> asyncio.Future[Any]:
        """Start the pod, report its progress, and report at the end what was missing.

        As with KubeSpawner, the start is in progress when this returns, and ``progress`` ends with
        it.

        Raises:
            StartRefused: The pod did not start in time.
        """
        steps = self.steps = self.steps or Steps()
        starting = asyncio.ensure_future(self._start_in_time())
        starting.add_done_callback(lambda done: steps.end())
        self._start_future = starting  # type: ignore[assignment]
        return starting

    async def _start_in_time(self) -> Any:
        seen: set[str] = set()
        reporting = asyncio.ensure_future(self._report_events(seen))
        try:
            async with asyncio.timeout(max(1.0, self.start_timeout - BEFORE_TIMEOUT_S)):
                where = await super().start()
            self._report_news(seen)
            return where
        except TimeoutError as late:
            text = kube_words.not_started(self.start_timeout, self._last_message)
            raise self._refused(
                StartRefused(text, reason="pod-start", status_code=503, retry_after_s=60)
            ) from late
        finally:
            reporting.cancel()

    async def _report_events(self, seen: set[str]) -> None:
        """Convert Kubernetes' events of the pod into steps as they arrive."""
        begun, patient = time.monotonic(), 0.0
        while True:
            await asyncio.sleep(EVENTS_S)
            if self.pod_reflector is not None:
                patient = self.ask_for_patience(time.monotonic() - begun, patient)
                self._report_news(seen)

    def _report_news(self, seen: set[str]) -> None:
        """Report the new events, and what else the pod's state shows."""
        for event in self.events:
            uid = f"{event['metadata']['uid']} {event['metadata'].get('resourceVersion')}"
            if uid not in seen:
                seen.add(uid)
                self._report(kube_words.of_event(event), event)
        pod = self.pod_reflector.pods.get(f"{self.namespace}/{self.pod_name}")
        for message in kube_words.of_pod(pod or {}):
            self._report(message, None)

    def ask_for_patience(self, elapsed: float, last: float) -> float:
        """Report KubeSpawner's own message in a slow start. Return the time of the last report."""
        threshold = getattr(self, "slow_spawn_message_threshold", 0)  # since KubeSpawner 7.1
        if not threshold or elapsed < max(threshold, last + self.slow_spawn_message_frequency):
            return last
        if self.steps is not None:
            text = textwrap.dedent(self.slow_spawn_message).strip()
            self.steps.add(text.format(seconds=int(elapsed)), 50)
        return elapsed

    def _report(self, message: kube_words.StartMessage, event: Mapping[str, Any] | None) -> None:
        if self.steps is None or message == self._last_message:
            return
        self._last_message = message
        more: dict[str, object] = {"state": {"code": message.code, "stuck": message.stuck}}
        if event is not None:
            more["raw_event"] = event
        self.steps.add(message.text, message.percent, **more)

    # ------------------------------------------------------------------ watching

    async def _start_reflector(self, kind: str, reflector_class: Any, **settings: Any) -> Any:
        """Start KubeSpawner's reflector in a form that survives outages of the API server."""
        return await super()._start_reflector(kind, untiring(reflector_class), **settings)

    # ------------------------------------------------------------------ ending

    def _until_gone(self) -> Awaitable[None] | None:
        """Return an awaitable that ends when the pod is gone. Until then it uses its GPUs (R1)."""
        if self.pod_reflector is None:
            return None
        key = f"{self.namespace}/{self.pod_name}"
        pod = self.pod_reflector.pods.get(key)
        if pod is None or LEASE not in (pod["metadata"].get("labels") or {}):
            return None
        return _gone(self.pod_reflector, key, pod["metadata"]["uid"])


async def _gone(reflector: Any, key: str, uid: str) -> None:
    """Wait until a pod is gone, at most ``GONE_S``."""
    deadline = time.monotonic() + GONE_S
    while time.monotonic() < deadline:
        pod = reflector.pods.get(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return
        await asyncio.sleep(EVENTS_S)


def _refused_by_cluster(failed: ApiException) -> StartRefused:
    try:
        message = str(json.loads(failed.body or "")["message"])
    except (TypeError, ValueError, KeyError):
        message = str(failed.reason or failed.body)
    text, short = kube_words.refused_by_cluster(failed.status, message)
    if short:
        return StartRefused(text, reason="cluster-quota", status_code=503, retry_after_s=60)
    return StartRefused(text, reason="cluster-policy", status_code=409)
