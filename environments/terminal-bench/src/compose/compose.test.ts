// biome-ignore-all lint/suspicious/noTemplateCurlyInString: compose files have this form.
import { describe, expect, it } from "vitest";
import { hazards, parseCompose } from "./compose.ts";
import { parseDockerfile, workdirOf } from "./dockerfile.ts";
import { imageName, projectName, tb1Variables } from "./variables.ts";

describe("compose files", () => {
  it("may not reach the host", () => {
    const dangers = (service: string) => hazards(parseCompose(`services:\n  a: ${service}`)).length;
    for (const service of [
      "{network_mode: host}",
      "{pid: host}",
      "{volumes: ['../x:/y']}",
      "{volumes: ['./a/../../x:/y']}",
      "{volumes: ['./a/..:/y']}",
      "{volumes: ['./${X}:/y']}",
      "{volumes: ['~/x:/y']}",
      "{volumes: [{type: bind, source: ../x, target: /y}]}",
      "{volumes: [{type: bind, source: /, target: /y}]}",
      "{volumes: [{type: volume, source: /etc, target: /y}]}",
      "{volumes: ['/var/run/docker.sock:/var/run/docker.sock']}",
      "{cap_add: [ALL]}",
    ]) {
      expect(dangers(service), service).toBe(1);
    }
    for (const service of [
      "{volumes: ['data:/y', '/y', './x:/y', './x/y.txt:/y', '.:/y', {type: bind, source: x, target: /y}]}",
      "{privileged: false}",
      "{volumes: ['${T_BENCH_TASK_LOGS_PATH}:/logs']}",
    ])
      expect(dangers(service), service).toBe(0);
  });

  it("need services", () => {
    expect(() => parseCompose("version: '3'")).toThrow("needs services");
  });
});

describe("Dockerfiles", () => {
  it("have continued lines and comments", () => {
    expect(parseDockerfile("# c\nRUN a \\\n  # inside\n  b\n\nworkdir /x")).toEqual([
      { name: "RUN", text: "a    b" },
      { name: "WORKDIR", text: "/x" },
    ]);
  });

  it("have the working directory of their last stage", () => {
    expect(workdirOf("FROM a\nWORKDIR /x\nFROM b\nWORKDIR /y\nWORKDIR z")).toBe("/y/z");
    expect(workdirOf("FROM a\nWORKDIR /x\nFROM b")).toBeNull();
  });
});

describe("names", () => {
  it("are valid for Docker", () => {
    expect([imageName("My Task"), projectName("_Trial.1")]).toEqual(["hb__my-task", "0_trial-1"]);
    expect(tb1Variables("a.b", "t.1", "/l", "/a")).toMatchObject({
      T_BENCH_TASK_DOCKER_CLIENT_IMAGE_NAME: "tb__a-b__client",
      T_BENCH_TASK_DOCKER_CLIENT_CONTAINER_NAME: "t-1",
    });
  });
});
