import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Environment, type EnvironmentOptions } from "@aenv/sdk";
import { kubeconfigPath, loadClusterArchive, pythonPath } from "@aenv/testing";
import { platformImages } from "@aenv/testing/platform-images";
import { chart, mustRun, type Ran, runProgram, withValues } from "./chart.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The chart in the cluster for tests, with the images of this checkout. */
export interface Installation {
  readonly systemUrl: string;
  readonly token: string;
  /** How a client of the SDK reaches it, through the Service of the chart. */
  readonly client: EnvironmentOptions;
  upgrade(values: object): Promise<void>;
  /** Publishes the project in a folder of the repository with the command line. */
  push(folder: string): Promise<void>;
  open(environment: string): Promise<Environment>;
  /** The ids of the instances with a label that are not over. */
  liveInstances(label: string, value: string): Promise<string[]>;
  delete(instanceId: string): Promise<void>;
  /** Runs parts of interop/python/remote_mode.py with the original Python SDK. Its clients use the ports 8080 and 8081 of the Service. */
  useFromPython(...parts: readonly string[]): Promise<Readonly<Record<string, unknown>>>;
  uninstall(): Promise<void>;
}

const kubeconfig = () => ["--kubeconfig", kubeconfigPath() ?? ""];

export const kubectl = (...args: string[]) => mustRun("kubectl", [...kubeconfig(), ...args]);
/** The same for commands that may fail. */
export const kubectlAny = (...args: string[]) => runProgram("kubectl", [...kubeconfig(), ...args]);
export const apply = (text: string, ...args: string[]) => mustRun("kubectl", [...kubeconfig(), "apply", ...args, "--filename", "-"], text);

export async function install(namespace: string, values: object): Promise<Installation> {
  const images = await platformImages();
  await loadClusterArchive(images.archive);
  const imageOf = (name: string) => ({ repository: name.slice(0, name.lastIndexOf(":")), tag: name.slice(name.lastIndexOf(":") + 1) });
  const all = {
    image: imageOf(images.server),
    baseImage: imageOf(images.base),
    // The cluster for tests has few processors, and volumes that are folders of root.
    redis: { image: imageOf(images.redis), resources: { requests: { cpu: "10m", memory: "16Mi" } } },
    volumePermissions: { enabled: true },
    ...values,
  };
  await helm(["install", "aenv", chart, "--create-namespace", "--wait", "--timeout", "4m"], namespace, all);
  const address = await kubectl("--namespace", namespace, "get", "service", "aenv", "--output", "jsonpath={.spec.clusterIP}");
  const secret = await kubectl("--namespace", namespace, "get", "secret", "aenv-admin", "--output", "jsonpath={.data.token}");
  const token = Buffer.from(secret, "base64").toString();
  const systemUrl = `http://${address}`;
  const client = { systemUrl, apiKey: token };
  const ask = async (method: string, path: string): Promise<unknown> => {
    const response = await fetch(`${systemUrl}:8080${path}`, { method, headers: { authorization: `Bearer ${token}` } });
    if (!response.ok) throw new Error(`${method} ${path} got ${response.status}: ${await response.text()}`);
    return ((await response.json()) as { readonly data: unknown }).data;
  };
  return {
    systemUrl,
    token,
    client,
    upgrade: async (more) => void (await helm(["upgrade", "aenv", chart, "--wait", "--timeout", "4m"], namespace, { ...all, ...more })),
    push: async (folder) => {
      const env = { ...process.env, AENV_SYSTEM_URL: systemUrl, AENV_API_KEY: token };
      const command = [join(root, "packages/aenv/bin/aenv.js"), "push"];
      await promisify(execFile)(process.execPath, command, { cwd: join(root, folder), env, timeout: 120_000 });
    },
    useFromPython: async (...parts) => {
      const env = { ...process.env, AENV_API_KEY: token, PYTHONDONTWRITEBYTECODE: "1", PYTHONWARNINGS: "ignore" };
      const script = [join(root, "interop/python/remote_mode.py"), systemUrl, parts.join(",")];
      const { stdout } = await promisify(execFile)(pythonPath, script, { env, timeout: 240_000 });
      return JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
    },
    open: (environment) => Environment.create(environment, client),
    liveInstances: async (label, value) => {
      const { items } = (await ask("GET", "/env-instance/list?limit=1000")) as { readonly items: readonly Listed[] };
      const isOver = ({ status }: Listed) => status === "Failed" || status === "Terminated";
      return items.filter((one) => one.labels?.[label] === value && !isOver(one)).map(({ id }) => id);
    },
    delete: async (id) => void (await ask("DELETE", `/env-instance/${id}`)),
    uninstall: async () =>
      void (await mustRun("helm", ["uninstall", "aenv", "--wait", "--timeout", "3m", "--namespace", namespace, ...kubeconfig()])),
  };
}

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly labels?: Readonly<Record<string, string>>;
}

async function helm(args: readonly string[], namespace: string, values: object): Promise<Ran> {
  return withValues(values, async (file) => {
    const stdout = await mustRun("helm", [...args, "--namespace", namespace, "--values", file, ...kubeconfig()]);
    return { code: 0, stdout, stderr: "" };
  });
}
