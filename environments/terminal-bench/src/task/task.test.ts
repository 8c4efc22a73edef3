import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { type Files, temporaryTree } from "@aenv/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hasServices } from "../compose/of-task.ts";
import { problemsOf } from "../environment/open-options.ts";
import { InvalidValue } from "../fields/field.ts";
import { loadExample } from "../fixtures/examples.ts";
import { checkArtifact, checkConfig } from "./checks.ts";
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
    expect(() => parseTaskToml("[environment]\ncpus = 0.5")).toThrow("environment.cpus: expected a whole number, got 0.5");
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
    const files = { ...without("tests/test.sh"), "task.toml": '[verifier]\nenvironment_mode = "separate"' };
    expect(await load(files)).toMatchObject({ format: "harbor", tests: null });
  });

  it("with steps needs their folders, instructions and scripts", async () => {
    const steps = { "task.toml": '[[steps]]\nname = "one"', "environment/Dockerfile": "FROM x" };
    expect(await load(steps)).toBe("TASK: the folder steps/one/ of a step is missing");
    expect(await load({ ...steps, "steps/one/x": "" })).toBe("TASK: steps/one/instruction.md is missing");
    expect(await load({ ...steps, "steps/one/instruction.md": "" })).toContain("the step 'one' has no test.sh");
    expect(await load({ ...steps, "steps/one/instruction.md": "# canary\nGo.", "tests/test.sh": "" })).toMatchObject({
      instruction: "",
      steps: [{ instruction: "Go.", hasTestScript: false }],
    });
  });

  it("is refused with every reason for what would hang or escape", async () => {
    const toml = 'artifacts = ["/a/../b"]\n[agent]\ntimeout_sec = 0\n[environment]\ncpus = -1\nos = "Windows"';
    expect(await load({ ...minimal, "task.toml": toml })).toBe(
      "TASK: agent.timeout_sec must be greater than 0, got 0; environment.cpus must not be negative, got -1; " +
        "environment.os = \"windows\" is not supported; artifacts[0].source must not contain '..'",
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
    const problems = checkConfig(parseTaskToml('[[steps]]\nname = "../a"\n[[steps]]\nname = "b"\n[[steps]]\nname = "b"'));
    expect(problems).toEqual(["steps: '../a' is not a name for a folder", "steps: the name 'b' is used twice"]);
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
    const { writeFileSync } = await import("node:fs");
    writeFileSync(join(tree.path, "instruction.md"), Buffer.from([0xff, 0xfe]));
    await expect(loadTask(tree.path)).rejects.toThrow("cannot be read");
  });
});
