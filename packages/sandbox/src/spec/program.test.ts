import { describe, expect, it } from "vitest";
import { containerProgram, mainProgram } from "./program.ts";

const image = {
  entrypoint: ["/run"],
  command: ["/run", "a"],
  variables: ["PATH=/bin", "A=1=2"],
  user: "app",
  workingDirectory: "/app",
  ports: [],
  labels: {},
};

describe("the program of a sandbox", () => {
  it("is that of the image, with the variables of both", () => {
    expect(mainProgram({ command: [], variables: { A: "3" } }, image)).toEqual({
      command: ["/run", "a"],
      variables: { PATH: "/bin", A: "3" },
      workingDirectory: "/app",
      user: "app",
    });
  });

  it("is the sandbox's own command if it has one", () => {
    expect(mainProgram({ command: ["node"], variables: {} }, image)).toMatchObject({ command: ["node"], variables: { A: "1=2" } });
    expect(mainProgram({ command: ["node"], variables: {} }, null)).toEqual({
      command: ["node"],
      variables: {},
      workingDirectory: "/",
      user: "",
    });
  });

  it("is none if neither has a command", () => {
    expect(mainProgram({ command: [], variables: {} }, null)).toBeNull();
  });
});

describe("the program of a service", () => {
  it("is that of the image with another command, or with another entry point, which has no command of the image", () => {
    const commandOf = (program: object) => containerProgram(program, {}, image)?.command;
    expect(commandOf({})).toEqual(["/run", "a"]);
    expect(commandOf({ command: ["b"] })).toEqual(["/run", "b"]);
    expect(commandOf({ entrypoint: ["/other"] })).toEqual(["/other"]);
    expect(commandOf({ entrypoint: [], command: ["c"] })).toEqual(["c"]);
    expect(commandOf({ entrypoint: [], command: [] })).toBeUndefined();
  });

  it("has its own folder, user and variables", () => {
    expect(containerProgram({ cwd: "/srv", user: "0" }, { A: "2" }, image)).toMatchObject({
      workingDirectory: "/srv",
      user: "0",
      variables: { PATH: "/bin", A: "2" },
    });
  });
});
