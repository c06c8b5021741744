"""The manifests of samples/kubernetes: every object is one that its engine knows, without a field of its own.

Needs the packages kubernetes-validate and kubeflow-trainer-api (scripts/check_manifests.sh installs them); what cannot
be checked without them is skipped.
"""

import importlib
import json
import pathlib
import unittest

import yaml

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "samples" / "kubernetes"
MODELS = {  # of kubeflow-trainer-api
    "JobSet": "JobsetV1alpha2JobSet",
    "TrainingRuntime": "TrainerV1alpha1TrainingRuntime",
    "TrainJob": "TrainerV1alpha1TrainJob",
}
UNKNOWN = {"batch.volcano.sh/v1alpha1"}  # no schema to be had


def module(name):
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def objects():
    for file in sorted(FOLDER.glob("*.yaml")):
        for entry in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            yield file.name, entry


def lost(given, kept, path=""):
    """The fields of `given` that `kept` has not, or has otherwise."""
    if isinstance(given, dict) and isinstance(kept, dict):
        return [line for key in given for line in lost(given[key], kept.get(key), f"{path}.{key}")]
    if isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        return [line for i, each in enumerate(given) for line in lost(each, kept[i], f"{path}[{i}]")]
    return [] if given == kept else [f"{path}: {given!r} became {kept!r}"]


def pods(entry):
    """Every pod specification within an object."""
    if isinstance(entry, dict):
        if "containers" in entry:
            yield entry
        for value in entry.values():
            yield from pods(value)
    elif isinstance(entry, list):
        for value in entry:
            yield from pods(value)


class Manifests(unittest.TestCase):
    def test_objects_of_kubernetes_are_valid(self):
        validate = module("kubernetes_validate")
        if validate is None:
            self.skipTest("kubernetes-validate is not installed")
        checked = 0
        for file, entry in objects():
            if entry["kind"] in MODELS or entry["apiVersion"] in UNKNOWN:
                continue
            with self.subTest(file=file, kind=entry["kind"]):
                validate.validate(entry, validate.latest_version(), strict=True)
                checked += 1
        self.assertGreaterEqual(checked, 6)

    def test_objects_of_kubeflow_lose_no_field(self):
        models = module("kubeflow_trainer_api.models")
        if models is None:
            self.skipTest("kubeflow-trainer-api is not installed")
        seen = set()
        for file, entry in objects():
            if entry["kind"] not in MODELS:
                continue
            seen.add(entry["kind"])
            with self.subTest(file=file, kind=entry["kind"]):
                model = getattr(models, MODELS[entry["kind"]]).from_dict(entry)
                kept = json.loads(json.dumps(model.to_dict(), default=str))
                self.assertEqual(lost(entry, kept), [])
        self.assertEqual(seen, set(MODELS))

    def test_every_pod_runs_as_an_administrator_wants_it(self):
        count = 0
        for file, entry in objects():
            for pod in pods(entry):
                count += 1
                with self.subTest(file=file):
                    self.assertTrue(pod["securityContext"]["runAsNonRoot"])
                    secret = next(each["secret"] for each in pod["volumes"] if "secret" in each)
                    self.assertEqual(secret["defaultMode"], 0o440)
                    self.assertIn("fsGroup", pod["securityContext"])
                    for container in pod["containers"]:
                        own = container["securityContext"]
                        self.assertTrue(own["readOnlyRootFilesystem"])
                        self.assertFalse(own["allowPrivilegeEscalation"])
                        self.assertEqual(own["capabilities"], {"drop": ["ALL"]})
                        self.assertIn("limits", container["resources"])
                        grace = {each["name"]: each.get("value") for each in container["env"]}["DPWA_GRACE_S"]
                        self.assertEqual(int(grace), pod["terminationGracePeriodSeconds"])
        self.assertEqual(count, 5)


if __name__ == "__main__":
    unittest.main()
