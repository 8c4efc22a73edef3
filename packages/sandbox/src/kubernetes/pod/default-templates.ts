import type { Container, Pod } from "./types.ts";

/** The container that runs the program of a sandbox. */
export const MAIN = "main";

const main: Container = {
  name: MAIN,
  imagePullPolicy: "IfNotPresent",
  // A sandbox may use much for a moment, and most use little: the scheduler counts the requests.
  resources: {
    limits: { cpu: "2", memory: "4Gi", "ephemeral-storage": "10Gi" },
    requests: { cpu: "50m", memory: "128Mi", "ephemeral-storage": "128Mi" },
  },
};

/** The templates of an installation without its own, by the names of the original. */
export const defaultTemplates: Readonly<Record<string, Pod>> = {
  singleContainer: template("singleContainer", [{ ...main, env: [{ name: "AENV_TYPE", value: "singleContainer" }] }]),
  dualContainer: template(
    "dualContainer",
    [
      {
        ...main,
        env: [{ name: "AENV_TYPE", value: "dualContainer" }],
        volumeMounts: [{ name: "shared", mountPath: "/shared" }],
      },
      {
        name: "second",
        imagePullPolicy: "IfNotPresent",
        command: ["/bin/sh", "-c", "--"],
        args: ["sleep infinity"],
        resources: { limits: { cpu: "1", memory: "1Gi" }, requests: { cpu: "50m", memory: "64Mi" } },
        volumeMounts: [{ name: "shared", mountPath: "/shared" }],
      },
    ],
    [{ name: "shared", emptyDir: {} }],
  ),
};

function template(name: string, containers: readonly Container[], volumes: Pod["spec"]["volumes"] = []): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "placeholder", labels: { "app.kubernetes.io/name": "aenv-sandbox", "template-type": name } },
    spec: { containers, ...(volumes.length > 0 && { volumes }) },
  };
}
