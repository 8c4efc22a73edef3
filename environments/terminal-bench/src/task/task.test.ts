// biome-ignore-all lint/suspicious/noTemplateCurlyInString: templates of tasks have this form.
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Files, temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasServices } from "../compose/of-task.ts";
import { problemsOf } from "../environment/open-options.ts";
import { InvalidValue } from "../fields/field.ts";
import { loadExample } from "../fixtures/examples.ts";
import { checkArtifact } from "./checks.ts";
import { parseSize } from "./config/environment.ts";
import { hostMatches, parseHost } from "./config/network.ts";
import { parseTaskToml, TomlSyntaxError } from "./config/toml.ts";
import { stripCanary } from "./instruction.ts";
import { loadTask } from "./load.ts";
import { mergeMcpServers, parseMcpFile } from "./mcp.ts";
import type { Task } from "./model.ts";

const minimal: Files = {
  "task.toml": "",
  "instruction.md": "Do it.\n",
  "environment/Dockerfile": "FROM x\n",
  "tests/test.sh": "true\n",
};

async function load(files: Files): Promise<unknown> {
  using tree = temporaryTree(files);
  return await loadTask(tree.path).catch((error: Error) => error.message.replace(tree.path, "TASK"));
}

function without(...names: readonly string[]): Files {
  return Object.fromEntries(Object.entries(minimal).filter(([name]) => !names.includes(name)));
}

describe("task.toml", () => {
  it("accepts numbers in strings, and keeps texts of users", () => {
    const config = parseTaskToml(
      '[environment]\ncpus = "2"\nmemory = " 1.5g "\n[agent]\ntimeout_sec = 5\nuser = 1000\n[verifier]\nuser = "1000"',
    );
    expect(config.environment).toMatchObject({ cpus: 2, memory_mb: 1536 });
    expect([config.agent.timeout_sec, config.agent.user, config.verifier.user]).toEqual([5, 1000, "1000"]);
  });

  it("says where a value is wrong", () => {
    expect(() => parseTaskToml("[environment]\ngpus = 0.5")).toThrow("environment.gpus: expected a whole number, got 0.5");
    expect(() => parseTaskToml('[[steps]]\nname = "a"\n[steps.verifier.env]\nA = 1')).toThrow(
      "steps[0].verifier.env.A: expected a string, got 1",
    );
    expect(() => parseTaskToml("a = ")).toThrow(TomlSyntaxError);
  });

  it("keeps metadata, with dates as texts", () => {
    expect(parseTaskToml("[metadata]\nday = 2026-01-02\nat = 2026-01-02T03:04:05.5+02:00\ncount = 3").metadata).toEqual({
      day: "2026-01-02",
      at: "2026-01-02T03:04:05.500000+02:00",
      count: 3,
    });
  });

  it("reads the additions of later editions only when they are asked for", () => {
    const source = '[[verifier.collect]]\ncommand = "true"\n[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = []';
    expect(parseTaskToml(source).verifier.collect).toEqual([{ command: "true", service: "main", timeout_sec: 60, user: null }]);
    expect(() => parseTaskToml(source, "reference")).toThrow(InvalidValue);
  });

  it("reads an allow list without the key of its hosts as one of none, an empty destination as none, and checks allow_internet", () => {
    const { agent, artifacts } = parseTaskToml('artifacts = [{ source = "/a", destination = "" }]\n[agent]\nnetwork_mode = "allowlist"');
    expect([agent, artifacts]).toMatchObject([{ network_mode: "allowlist", allowed_hosts: null }, [{ destination: null }]]);
    expect(() => parseTaskToml('[environment]\nnetwork_mode = "public"\nallow_internet = 2')).toThrow("environment.allow_internet");
  });

  it("accepts a part of a processor, which the recorded reference does not", () => {
    const cpusOf = (text: string) => parseTaskToml(`[environment]\ncpus = ${text}`).environment.cpus;
    expect(["0.5", '"0.5"', "2.0", "2"].map(cpusOf)).toEqual([0.5, 0.5, 2, 2]);
    expect(() => cpusOf("inf")).toThrow("expected a finite number");
    expect(() => parseTaskToml("[environment]\ncpus = 0.5", "reference")).toThrow("expected a whole number");
  });

  it("has headers of MCP servers, whose credentials are templates", () => {
    const headers = (text: string) =>
      parseTaskToml(`[[environment.mcp_servers]]\nname = "a"\nurl = "http://a"\nheaders = { ${text} }`).environment.mcp_servers[0]?.headers;
    expect(headers('X-Team = "a", Authorization = "Bearer ${TOKEN}"')).toEqual({ "X-Team": "a", Authorization: "Bearer ${TOKEN}" });
    expect(() => headers('Authorization = "Bearer abc"')).toThrow(
      "environment.mcp_servers[0].headers.Authorization: must name its credential",
    );
    expect(() => headers('"X Team" = "a"')).toThrow("not a name of an HTTP header");
  });

  it("never fails with another error than those of the format", () => {
    const key = fc.constantFrom(
      "environment",
      "agent",
      "verifier",
      "steps",
      "task",
      "artifacts",
      "metadata",
      "memory",
      "env",
      "allowed_hosts",
    );
    const value = fc.constantFrom("1", "true", '"x"', "[]", "{}", "nan", "1979-05-27", '["a"]', "[{}]");
    fc.assert(
      fc.property(fc.array(fc.tuple(key, key, value), { maxLength: 4 }), (lines) => {
        const source = lines.map(([table, name, given]) => `${table}.${name} = ${given}`).join("\n");
        try {
          parseTaskToml(source);
        } catch (error) {
          expect(error instanceof InvalidValue || error instanceof TomlSyntaxError, String(error)).toBe(true);
        }
      }),
    );
  });
});

describe("sizes", () => {
  it("are whole megabytes", () => {
    fc.assert(fc.property(fc.nat(10_000), (number) => parseSize(`${number}G`) === number * 1024 && parseSize(` ${number}m`) === number));
  });
});

describe("hosts", () => {
  it("are the same after a second reading", () => {
    fc.assert(fc.property(fc.domain(), (host) => parseHost(parseHost(` ${host.toUpperCase()}. `)) === parseHost(host)));
  });

  it.each([
    ["10.0.0.0/255.0.0.0", "10.0.0.0/8"],
    ["10.0.0.0/0.255.255.255", "10.0.0.0/8"],
    ["192.0.2.7", "192.0.2.7"],
    ["2001:DB8:0:0::1", "2001:db8::1"],
    ["2001:db8::/32", "2001:db8::/32"],
    ["::/0", "::/0"],
  ])("can be the address or network %s", (given, expected) => {
    expect(parseHost(given)).toBe(expected);
    expect(() => parseHost(given.includes("7") ? `*.${given}` : given, "", given.includes("7") ? "later" : "reference")).toThrow(
      InvalidValue,
    );
  });

  it.each(["10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/255.0.255.0", "2001:db8::1/32", "[::1]", "fe80::1%eth0", "host:80", "a/b", "http://a"])(
    "cannot be %s",
    (given) => {
      expect(() => parseHost(given)).toThrow(InvalidValue);
    },
  );

  it("cover only themselves; a star covers subdomains", () => {
    expect(hostMatches("ubuntu.com", "ask.ubuntu.com")).toBe(false);
    expect(hostMatches("*.ubuntu.com", "ask.ubuntu.com")).toBe(true);
    expect(hostMatches("*.ubuntu.com", "ubuntu.com")).toBe(false);
    expect(hostMatches("*.ubuntu.com", "myubuntu.com")).toBe(false);
  });
});

describe("a prompt", () => {
  it("loses canary lines and blank lines at its start, and nothing else", () => {
    expect(stripCanary("# canary x\n<!-- CANARY -->\n\n\nText\n# canary\n")).toBe("Text\n# canary\n");
    fc.assert(fc.property(fc.stringMatching(/^[a-z][a-z \n]*$/), (text) => stripCanary(`<!-- canary -->\n\n${text}`) === text));
  });
});

describe("a task's folder", () => {
  it("needs an instruction, an environment and a test script", async () => {
    expect(await load(without("instruction.md"))).toBe("TASK: instruction.md is missing");
    expect(await load(without("environment/Dockerfile"))).toBe("TASK: the folder environment/ is missing");
    expect(await load(without("tests/test.sh"))).toBe("TASK: tests/test.sh is missing");
    expect(await load(without("task.toml"))).toContain("neither task.toml nor task.yaml");
  });

  it("needs no script for a separate verification", async () => {
    const separate = { ...without("tests/test.sh"), "task.toml": '[verifier]\nenvironment_mode = "separate"' };
    expect(await load({ ...separate, "tests/Dockerfile": "FROM x" })).toMatchObject({ verifierEnvironment: { hasTests: true } });
    expect(await load({ ...separate, "task.toml": '[verifier.environment]\ndocker_image = "x"' })).toMatchObject({
      tests: null,
      verifierEnvironment: { definition: { kind: "image", image: "x", files: null }, hasTests: true },
    });
    expect(await load(separate)).toBe("TASK: tests/test.sh is missing");
  });

  it("verifies in a new environment of the agent's image if the verifier has none of its own", async () => {
    const toml = '[environment]\ndocker_image = "agent"\n[verifier.environment]\nmemory_mb = 64';
    expect(await load({ ...minimal, "task.toml": toml })).toMatchObject({
      verifierEnvironment: {
        config: { docker_image: "agent", memory_mb: 64 },
        definition: { kind: "image", image: "agent" },
        hasTests: false,
      },
    });
  });

  it("takes the image of a step's verifier, then that of the step's tests, then those of the task", async () => {
    const files = {
      ...minimal,
      "task.toml": '[verifier.environment]\ndocker_image = "task"\n[[steps]]\nname = "a"\n[[steps]]\nname = "b"',
      "steps/a/instruction.md": "Go.",
      "steps/a/tests/Dockerfile": "FROM x",
      "steps/b/instruction.md": "Go.",
    };
    const task = (await load(files)) as Task;
    expect(task.steps.map(({ verifierEnvironment }) => verifierEnvironment)).toMatchObject([
      { config: { docker_image: null }, definition: { kind: "dockerfile", context: expect.stringMatching(/steps\/a\/tests$/) } },
      { config: { docker_image: "task" }, definition: { kind: "image", image: "task" } },
    ]);
  });

  it.each([
    [
      "of Windows",
      { "task.toml": '[environment]\nos = "windows"', "tests/test.bat": "" },
      "it needs Windows containers, and sandboxes run Linux",
    ],
    ["without an environment definition", { "environment/Dockerfile": null }, /^no environment is defined: set docker_image, or add/],
    ["that needs a GPU", { "task.toml": "[environment]\ngpus = 1" }, "it needs a GPU, which sandboxes do not have"],
    [
      "that needs a TPU",
      { "task.toml": '[environment.tpu]\ntype = "v5e"\ntopology = "2x2"' },
      "it needs a TPU, which sandboxes do not have",
    ],
    [
      "that may reach only IPv6",
      { "task.toml": '[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["2001:db8::/32"]' },
      "its allowed_hosts are all IPv6, which sandboxes do not have",
    ],
    [
      "whose verifier has several services",
      {
        "task.toml": '[verifier]\nenvironment_mode = "separate"',
        "tests/docker-compose.yaml": "services:\n  main: {image: x}\n  db: {image: y}",
      },
      "its verifier's environment: it has several services, which only an agent's environment can have",
    ],
  ])("%s is read, and cannot be played", async (_, changes, problem) => {
    const files = Object.entries({ ...minimal, "environment/x": "", ...changes }).filter(([, text]) => text !== null);
    const task = (await load(Object.fromEntries(files) as Files)) as Task;
    expect(problemsOf(task, true)).toEqual([typeof problem === "string" ? problem : expect.stringMatching(problem)]);
  });

  it("cannot bring files from elsewhere as its tests or its solution", async () => {
    using tree = temporaryTree({ ...minimal, "solution/solve.sh": "" });
    symlinkSync("/etc/passwd", join(tree.path, "tests/users"));
    await expect(loadTask(tree.path)).rejects.toThrow("tests/users is a link that leads out of the task");
    writeFileSync(join(tree.path, "tests/.harborignore"), "users\n");
    await loadTask(tree.path);
    symlinkSync("..", join(tree.path, "solution/loop"));
    await expect(loadTask(tree.path)).rejects.toThrow("is a link to a folder that contains it");
  });

  it("cannot leave out its own test script", async () => {
    expect(await load({ ...minimal, "tests/.harborignore": "*.sh" })).toBe("TASK: tests/test.sh is left out by .harborignore");
  });

  it("with steps needs their folders, instructions and scripts", async () => {
    const steps = { "task.toml": '[[steps]]\nname = "one"', "environment/Dockerfile": "FROM x" };
    expect(await load(steps)).toBe("TASK: the folder steps/one/ of a step is missing");
    expect(await load({ ...steps, "steps/one/x": "" })).toBe("TASK: steps/one/instruction.md is missing");
    expect(await load({ ...steps, "steps/one/instruction.md": "" })).toContain("the step 'one' has no test.sh");
    expect(await load({ ...steps, "steps/one/instruction.md": "# canary\nGo.", "tests/test.sh": "" })).toMatchObject({
      instruction: "",
      steps: [{ instruction: "Go." }],
    });
  });

  it("is refused with every reason for what would hang or escape", async () => {
    const toml = 'artifacts = ["/a/../b"]\n[agent]\ntimeout_sec = 0\n[environment]\ncpus = -1';
    expect(await load({ ...minimal, "task.toml": toml })).toBe(
      "TASK: agent.timeout_sec must be greater than 0, got 0; environment.cpus must not be negative, got -1; " +
        "artifacts[0].source must not contain '..'",
    );
  });

  it("with a dangerous compose file is refused", async () => {
    const compose = "services:\n  main:\n    privileged: true\n    volumes: ['/var/run/docker.sock:/s']\n";
    const message = await load({ ...minimal, "environment/docker-compose.yaml": compose });
    expect(message).toBe(
      "TASK: services.main.privileged is not allowed; services.main.volumes mounts /var/run/docker.sock, which is outside of the task's folder",
    );
  });

  it("warns of keys that are ignored", async () => {
    expect((await loadExample("harbor/hello-file")).warnings).toEqual([
      "task.toml: 'a_key_of_the_future' is not a known key and is ignored",
    ]);
  });

  it("is named by its package or its folder", async () => {
    expect(await loadExample("harbor/users")).toMatchObject({ name: "aenv-examples/users", shortName: "users" });
    expect(await loadExample("harbor/hello-file")).toMatchObject({ name: "hello-file", shortName: "hello-file" });
  });
});

describe("Terminal-Bench 1", () => {
  it("is read into the same model", async () => {
    const task = await loadExample("terminal-bench-1/environment");
    expect(task).toMatchObject({
      format: "terminal-bench-1",
      parser: "swebench",
      instruction: "Write the value of the variable CITY to city.txt in the working directory.\n",
      definition: { kind: "compose", mainService: "client" },
    });
    expect(task.config.agent.timeout_sec).toBe(60);
    expect(task.config.verifier).toMatchObject({ timeout_sec: 30, user: "root", env: { TEST_DIR: "/tests" } });
    expect(task.config.metadata).toMatchObject({ difficulty: "medium", category: "software_engineering" });
  });

  const tb1 = (service: string, more: Readonly<Record<string, string>> = {}) => ({
    "task.yaml": "instruction: Go\n",
    "run-tests.sh": "",
    "docker-compose.yaml": `services:\n  client: ${service}\n`,
    Dockerfile: "FROM x\n",
    ...more,
  });

  it("warns if the image or a mount shows the agent tests or solution", async () => {
    expect(await load(tb1("{build: .}", { Dockerfile: "FROM x\nCOPY tests/data.txt ./solution.sh /\n" }))).toMatchObject({
      warnings: [expect.stringContaining("solution.sh"), expect.stringContaining("tests")],
    });
    expect(await load(tb1("{build: ., volumes: ['./:/app', './tests/data:/data']}"))).toMatchObject({
      warnings: ["the compose file mounts tests/data: the agent can read it"],
    });
  });

  it("needs several sandboxes only if its compose file has several services", async () => {
    const one = (await load(tb1("{build: ., deploy: {resources: {limits: {memory: 1g}}}, tmpfs: /run, volumes: ['./:/app']}"))) as Task;
    const two = (await load(tb1("{build: .}\n  db: {image: x}"))) as Task;
    expect([one, two].map(hasServices)).toEqual([false, true]);
    expect([one, two].flatMap((task) => problemsOf(task, true))).toEqual([]);
  });

  it("is refused if it mounts a link, which could lead out of its folder", async () => {
    using tree = temporaryTree(tb1("{build: ., volumes: ['./data/inner:/data']}", { "elsewhere/inner/x": "" }));
    symlinkSync("/etc", join(tree.path, "data"));
    await expect(loadTask(tree.path)).rejects.toThrow("services.client.volumes mounts ./data/inner, and data is a link");
  });

  it("has typed commands as a solution", async () => {
    const { solution } = await loadExample("terminal-bench-1/typed-commands");
    expect(solution).toMatchObject({ kind: "commands", commands: [{ command: "mkdir -p out", block: false }, { block: true }] });
  });
});

describe("artifacts", () => {
  it("never leave the trial's folder", () => {
    const bad = ["../x", "/etc", "a/../../b", "a\\b", ".", "manifest.json"];
    for (const destination of bad)
      expect(checkArtifact({ source: "/a", destination, exclude: [], service: null }, "x"), destination).not.toEqual([]);
    expect(checkArtifact({ source: "/a", destination: "", exclude: [], service: null }, "x")).toEqual([]);
  });
});

describe("steps", () => {
  it("have names that are safe folders, each once", () => {
    const steps = (...names: readonly string[]) =>
      parseTaskToml(names.map((name) => `[[steps]]\nname = ${JSON.stringify(name)}\n`).join(""));
    expect(steps("Write it", "测试", "b.c").steps?.length).toBe(3);
    for (const name of ["../a", "a/b", "", " ", "..", "a.", "a ", "con", "COM1.txt", "a:b"])
      expect(() => steps(name), name).toThrow("is not a name for a folder");
    expect(() => steps("b", "B")).toThrow("the name 'B' is used twice");
  });
});

describe("MCP servers", () => {
  it("of a run replace those of the task with the same name", async () => {
    const { config } = await loadExample("harbor/skills-and-mcp");
    const own = parseMcpFile({ mcpServers: { notes: { command: "other", env: {} }, web: { type: "http", url: "http://x" } } });
    expect(mergeMcpServers(config.environment.mcp_servers, own).map(({ name, transport, command }) => [name, transport, command])).toEqual([
      ["notes", "stdio", "other"],
      ["remote", "streamable-http", null],
      ["web", "streamable-http", null],
    ]);
  });
});

describe("an unreadable file", () => {
  it("is a problem of the task, not a crash", async () => {
    using tree = temporaryTree(minimal);
    writeFileSync(join(tree.path, "instruction.md"), Buffer.from([0xff, 0xfe]));
    await expect(loadTask(tree.path)).rejects.toThrow("cannot be read");
  });
});
