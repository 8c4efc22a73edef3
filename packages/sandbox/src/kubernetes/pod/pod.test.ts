import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SandboxSpec } from "../../engine/engine.ts";
import { memoryLimitMb, templateCommand } from "./container.ts";
import { defaultTemplates } from "./default-templates.ts";
import { isLabelValue, labelsOf, podName, readLabels, subjectMarks } from "./names.ts";
import { bundlesIn, type PodInput, podOf } from "./pod.ts";
import { cpuQuantity, mebibytes, quantityValue } from "./quantity.ts";
import type { PodState } from "./state.ts";
import type { Container, Pod } from "./types.ts";

const single = defaultTemplates.singleContainer as Pod;
const dual = defaultTemplates.dualContainer as Pod;
const state: PodState = { format: 1, port: 8081, hasInit: true, memoryMb: null, attempt: "a", startsUntil: 0 };

function input(spec: Partial<SandboxSpec> = {}, more: Partial<PodInput> = {}): PodInput {
  return {
    homeId: "home",
    spec: { id: "shop-1", command: ["node", "main.js"], variables: {}, labels: {}, startTimeoutMs: 1_000, ...spec },
    template: single,
    baseImage: "base:1",
    state,
    initKey: "KEY",
    egress: "none",
    ...more,
  };
}

function mainOf(pod: Pod): Container {
  return pod.spec.containers[0] as Container;
}

function withMain(template: Pod, more: Partial<Container>): Pod {
  return {
    ...template,
    spec: { ...template.spec, containers: template.spec.containers.map((one, at) => (at === 0 ? { ...one, ...more } : one)) },
  };
}

describe("the pod of a sandbox", () => {
  it("runs the init of the base image as process 1, as strictly as the restricted standard allows", () => {
    const pod = podOf(input());
    expect(pod.spec).toMatchObject({
      restartPolicy: "Never",
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
    });
    expect(pod.spec.initContainers).toBeUndefined();
    expect(mainOf(pod)).toMatchObject({
      image: "base:1",
      command: ["/opt/aenv/init", "--listen", "tcp::61080", "--key", "KEY"],
      securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } },
      readinessProbe: { httpGet: { path: "/health", port: 8081 } },
    });
    expect(JSON.stringify(pod)).not.toContain("hostPath");
  });

  it("has a /dev/shm of the size that it asks for, in memory", () => {
    const pod = podOf(input({ resources: { shmMb: 512 } }));
    expect(pod.spec.volumes).toEqual([{ name: "aenv-shm", emptyDir: { medium: "Memory", sizeLimit: "512Mi" } }]);
    expect(mainOf(pod).volumeMounts).toEqual([{ name: "aenv-shm", mountPath: "/dev/shm" }]);
    expect(podOf(input()).spec.volumes).toBeUndefined();
  });

  it("starts a program that may start early by itself, at the address that the node gives to the pod", () => {
    const spec = { command: ["node", "a$(b).js"], variables: { DATA: "/data" } };
    const { command, env } = mainOf(podOf(input(spec, { state: { ...state, startsEarly: true } })));
    const own = ["--", "node", "a$$(b).js", "--host", "$(AENV_POD_IP)", "--port", "8081"];
    expect(command).toEqual(["/opt/aenv/init", "--listen", "tcp::61080", "--key", "KEY", ...own]);
    expect(env).toContainEqual({ name: "DATA", value: "/data" });
    expect(env?.at(-1)).toEqual({ name: "AENV_POD_IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } });
    expect(JSON.stringify(podOf(input(spec)))).not.toContain("/data");
  });

  it("with another image gets the init by a volume that it cannot write to", () => {
    const pod = podOf(input({ image: "shop:1" }));
    expect(pod.spec.initContainers).toMatchObject([{ image: "base:1", command: ["/opt/aenv/init", "--copy-to", "/.aenv/init"] }]);
    expect(mainOf(pod)).toMatchObject({ image: "shop:1", command: expect.arrayContaining(["/.aenv/init"]) });
    expect(mainOf(pod).volumeMounts).toContainEqual({ name: "aenv-init", mountPath: "/.aenv", readOnly: true });
  });

  it("without an init has the image's own program, and each variable once", () => {
    const template = withMain(single, {
      env: [
        { name: "A", value: "1" },
        { name: "A", value: "2" },
        { name: "B", value: "3" },
      ],
    });
    const pod = podOf(input({ image: "shop:1", variables: { B: "4", C: "5" } }, { template, state: { ...state, hasInit: false } }));
    const { command, env = [] } = mainOf(pod);
    expect(command).toBeUndefined();
    const values = Object.fromEntries(env.map(({ name, value }) => [name, value]));
    expect(values).toMatchObject({ A: "2", B: "4", C: "5" });
    expect(new Set(env.map(({ name }) => name)).size).toBe(env.length);
    expect(pod.spec.volumes).toBeUndefined();
  });

  it("without an init gives the image's own program the arguments of the template and of the sandbox", () => {
    const own = { image: "shop:1", arguments: ["--fast"] };
    const argsOf = (template: Pod) => mainOf(podOf(input(own, { template, state: { ...state, hasInit: false } }))).args;
    expect(argsOf(single)).toEqual(["--fast"]);
    expect(argsOf(withMain(single, { args: ["serve"] }))).toEqual(["serve", "--fast"]);
  });

  it("has the limits of its template, as far as it has none of its own", () => {
    const template = withMain(single, { resources: { limits: { cpu: "2", memory: "4Gi" } } });
    expect(mainOf(podOf(input({ resources: { cpus: 1 } }, { template }))).resources?.limits).toEqual({ cpu: "1", memory: "4Gi" });
    expect(memoryLimitMb(mainOf(template), {})).toBe(4_096);
    expect(memoryLimitMb(mainOf(template), { memoryMb: 100 })).toBe(100);
    expect(memoryLimitMb({ name: "main" }, {})).toBeNull();
  });

  it("has its limits, and requests of the template that do not exceed them", () => {
    const { resources } = mainOf(podOf(input({ resources: { memoryMb: 64, cpus: 0.02, diskMb: 300 } })));
    expect(resources).toEqual({
      limits: { cpu: "20m", memory: "64Mi", "ephemeral-storage": "300Mi" },
      requests: { cpu: "20m", memory: "64Mi", "ephemeral-storage": "128Mi" },
    });
  });

  it("refuses quantities that Kubernetes would refuse, and names them", () => {
    const template = withMain(single, { resources: { limits: { cpu: "1C" } } });
    expect(() => podOf(input({}, { template }))).toThrow(/the limit of cpu is '1C'.*no quantity/);
    const none = withMain(single, { resources: { limits: { memory: "0" } } });
    expect(() => podOf(input({}, { template: none }))).toThrow(/the limit of memory is '0'/);
  });

  it("keeps what the template says: node, tolerations, priority, pull secrets, runtime class, security", () => {
    const template: Pod = {
      ...single,
      metadata: { name: "x", labels: { team: "rl" }, annotations: { note: "yes" } },
      spec: {
        ...withMain(single, { imagePullPolicy: "Always", securityContext: { readOnlyRootFilesystem: true } }).spec,
        nodeSelector: { disk: "fast" },
        tolerations: [{ key: "gpu", operator: "Exists" }],
        priorityClassName: "low",
        imagePullSecrets: [{ name: "registry" }],
        runtimeClassName: "kata",
        restartPolicy: "Always",
        securityContext: { runAsUser: 0 },
      },
    };
    const pod = podOf(input({}, { template, runtimeClass: "gvisor" }));
    expect(pod.spec).toMatchObject({
      nodeSelector: { disk: "fast" },
      tolerations: [{ key: "gpu", operator: "Exists" }],
      priorityClassName: "low",
      imagePullSecrets: [{ name: "registry" }],
      runtimeClassName: "kata",
      restartPolicy: "Never",
      securityContext: { runAsUser: 0, runAsNonRoot: false },
    });
    expect(pod.metadata).toMatchObject({ labels: { team: "rl", "aenv.io/home": "home" }, annotations: { note: "yes" } });
    expect(mainOf(pod)).toMatchObject({
      imagePullPolicy: "Always",
      securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false },
    });
    expect(podOf(input({}, { runtimeClass: "gvisor" })).spec.runtimeClassName).toBe("gvisor");
  });

  it("of two containers has the init in the first, and the second as the template says", () => {
    const pod = podOf(input({ image: "task:1" }, { template: dual }));
    expect(pod.spec.containers.map(({ name, image, command }) => [name, image, command?.[0]])).toEqual([
      ["main", "task:1", "/.aenv/init"],
      ["second", "task:1", "/bin/sh"],
    ]);
    expect(templateCommand(withMain(dual, { command: ["run"], args: ["--now"] }))).toEqual(["run", "--now"]);
    expect(templateCommand(withMain(dual, { command: ["run"], args: ["--now"] }), ["--fast"])).toEqual(["run", "--now", "--fast"]);
    expect(templateCommand(withMain(dual, { args: ["--now"] }))).toEqual([]);
  });

  it("with a second container has an init in both, each on a port of its own, with the limits of each", () => {
    const second = { image: "task:1", resources: { memoryMb: 512, cpus: 0.5 } };
    const pod = podOf(input({ second }, { template: dual, state: { ...state, second: "second" } }));
    expect(pod.spec.containers).toMatchObject([
      { name: "main", image: "base:1", command: ["/opt/aenv/init", "--listen", "tcp::61080", "--key", "KEY"] },
      {
        name: "second",
        image: "task:1",
        command: ["/.aenv/init", "--listen", "tcp::61081", "--key", "KEY"],
        resources: { limits: { cpu: "500m", memory: "512Mi" } },
        volumeMounts: [{ mountPath: "/shared" }, { mountPath: "/.aenv", readOnly: true }],
        securityContext: { allowPrivilegeEscalation: false },
      },
    ]);
    expect(pod.spec.containers[1]?.args).toBeUndefined();
    expect(mainOf(pod).volumeMounts?.map(({ mountPath }) => mountPath)).toEqual(["/shared"]);
    expect(pod.spec.initContainers).toHaveLength(1);
    expect(() => podOf(input({ second }))).toThrow(/dualContainer has one container/);
  });

  it("is not ended by a probe of the template while its runner waits for an environment", () => {
    const livenessProbe = { httpGet: { path: "/health", port: 8081 } };
    const template = withMain(single, { livenessProbe });
    expect(mainOf(podOf(input({}, { template }))).livenessProbe).toBeUndefined();
    const listening = { kind: "port", port: 8081, healthPath: null } as const;
    expect(mainOf(podOf(input({ listening }, { template }))).livenessProbe).toEqual(livenessProbe);
  });

  it("has a volume for the folders of bundles, unless it can write to the files of the base image", () => {
    expect(bundlesIn(single, true)).toBe("/tmp/aenv-bundles");
    expect(podOf(input({}, { state: { ...state, bundles: "/tmp/aenv-bundles" } })).spec.volumes).toBeUndefined();
    expect(bundlesIn(withMain(single, { securityContext: { readOnlyRootFilesystem: true } }), true)).toBe("/aenv/bundles");
    expect(bundlesIn(single, false)).toBe("/aenv/bundles");
    const pod = podOf(input({ image: "shop:1" }, { state: { ...state, bundles: "/aenv/bundles" } }));
    expect(mainOf(pod).volumeMounts).toContainEqual({ name: "aenv-bundles", mountPath: "/aenv/bundles" });
  });
});

const LABEL_KEY = /^[a-z.]+\/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

describe("names and labels", () => {
  const id = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/);

  it("every sandbox id gives a valid pod name, the same each time, and different ones for different ids and homes", () => {
    fc.assert(
      fc.property(id, id, (one, other) => {
        const name = podName("home", one);
        expect(name).toMatch(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/);
        expect(name).toMatch(/-[a-z0-9]{6}$/);
        expect(podName("home", one)).toBe(name);
        if (one !== other) expect(podName("home", other)).not.toBe(name);
        expect(podName("other", one)).not.toBe(name);
      }),
    );
  });

  it("labels with any text are valid labels or annotations, and the platform's are read back", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.string()), (labels) => {
        const platform = labelsOf(labels);
        for (const made of [platform, subjectMarks({ labels, owner: labels.owner ?? "" })]) {
          for (const [key, value] of Object.entries(made.labels)) {
            expect(key).toMatch(LABEL_KEY);
            expect(isLabelValue(value)).toBe(true);
          }
          for (const key of Object.keys(made.annotations)) expect(key).toMatch(LABEL_KEY);
        }
        expect(readLabels(platform.annotations)).toEqual({ ...labels });
      }),
    );
  });

  it("names the environment as the original does", () => {
    const subject = { environment: "shop", version: "1.0.0+build", owner: "ada@example.com", ttl: "30m", instance: "shop-1" };
    const { labels, annotations } = subjectMarks({ ...subject, labels: { team: "blue", note: "two words", server: "mine" } });
    expect(labels).toEqual({
      "business/aenv-name": "shop",
      "business/aenv-ttl": "30m",
      "aenv.io/instance": "shop-1",
      "aenv.io/label-team": "blue",
      "aenv.io/label-server": "mine",
    });
    expect(annotations).toEqual({
      "business/aenv-version": "1.0.0+build",
      "business/aenv-owner": "ada@example.com",
      "aenv.io/label-note": "two words",
    });
    const pod = podOf(input({ labels: { server: "s1" }, subject }));
    expect(pod.metadata.name).toMatch(/^shop-[a-z0-9]{6}$/);
    expect(pod.metadata.labels).toMatchObject({ "business/aenv-name": "shop", "platform.aenv.io/server": "s1" });
  });
});

describe("quantities", () => {
  it("are numbers with the units of Kubernetes", () => {
    expect(["500m", "2", "1.5", "512Mi", "1Gi", "1e3", "2k", ".5"].map((text) => quantityValue(text, "cpu"))).toEqual([
      0.5,
      2,
      1.5,
      512 * 2 ** 20,
      2 ** 30,
      1_000,
      2_000,
      0.5,
    ]);
    for (const text of ["", "1C", "-1", "Mi", "1 Gi", "1GB"]) expect(() => quantityValue(text, "memory")).toThrow(/memory is/);
  });

  it("written from numbers are read as these numbers", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 512_000 }), (n) => Math.abs(quantityValue(cpuQuantity(n / 1_000), "cpu") - n / 1_000) < 1e-9),
    );
    fc.assert(fc.property(fc.integer({ min: 1, max: 1_000_000 }), (mb) => quantityValue(mebibytes(mb), "memory") === mb * 2 ** 20));
  });
});
