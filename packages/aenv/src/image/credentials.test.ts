import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { temporaryTree } from "@aenv/testing";
import { expect, it } from "vitest";
import { openCredentials } from "./credentials.ts";

it("adds the credentials of the settings to those of Docker, in a file that is private and deleted afterwards", () => {
  const auths = { "other.example.org": { auth: "b3RoZXI=" } };
  using home = temporaryTree({ ".docker/config.json": { auths, credsStore: "desktop" }, ".docker/cli-plugins/docker-buildx": "" });
  const credentials = openCredentials("ghcr.io", { username: "ada", password: "s:cret" }, { HOME: home.path });
  const { DOCKER_CONFIG: folder = "", REGISTRY_AUTH_FILE: file = "" } = credentials.variables;
  try {
    const auth = Buffer.from("ada:s:cret").toString("base64");
    const config = { auths: { ...auths, "ghcr.io": { auth } }, credsStore: "desktop" };
    expect(JSON.parse(readFileSync(join(folder, "config.json"), "utf8"))).toEqual({ ...config, credHelpers: { "ghcr.io": "" } });
    // buildah and podman take an empty name for that of a program.
    expect(JSON.parse(readFileSync(file, "utf8"))).toEqual({ ...config, credHelpers: {} });
    expect([statSync(folder).mode & 0o777, statSync(file).mode & 0o777]).toEqual([0o700, 0o600]);
    expect(existsSync(join(folder, "cli-plugins/docker-buildx"))).toBe(true);
  } finally {
    credentials[Symbol.dispose]();
  }
  expect(existsSync(folder)).toBe(false);
  expect(existsSync(join(home.path, ".docker/cli-plugins/docker-buildx"))).toBe(true);
});

it("leaves the credentials to the builder if the settings have none", () => {
  using credentials = openCredentials(null, {}, {});
  expect(credentials.variables).toEqual({});
});
