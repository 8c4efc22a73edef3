import { describe, expect, it } from "vitest";
import { mainProgram } from "./program.ts";

const image = { command: ["/run", "a"], variables: ["PATH=/bin", "A=1=2"], user: "app", workingDirectory: "/app", ports: [], labels: {} };

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
