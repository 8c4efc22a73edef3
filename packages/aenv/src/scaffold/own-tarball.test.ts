import { temporaryTree } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import { installedTarball } from "./own-tarball.ts";

const installedFrom = (resolved: string) => ({
  "node_modules/.package-lock.json": { packages: { "node_modules/aenvironment": { version: "0.1.0", resolved } } },
});

describe("the tarball of an installed package", () => {
  it("is the file that the project was created with, so that init in a project works as in a clone", () => {
    using tree = temporaryTree({ ...installedFrom("file:aenvironment-0.1.0-abc.tgz"), "aenvironment-0.1.0-abc.tgz": "the package" });
    const { name, bytes } = installedTarball(tree.path) ?? {};
    expect([name, String(bytes)]).toEqual(["aenvironment-0.1.0-abc.tgz", "the package"]);
  });

  it("is refused with the reason if the file is gone, and none is needed for a package of a registry", () => {
    using gone = temporaryTree(installedFrom("file:../aenvironment-0.1.0-abc.tgz"));
    expect(() => installedTarball(gone.path)).toThrow(/aenvironment-0\.1\.0-abc\.tgz, which does not exist any more/);
    using published = temporaryTree(installedFrom("https://packages.example/aenvironment-0.1.0.tgz"));
    expect(installedTarball(published.path)).toBeNull();
    using other = temporaryTree({ "package.json": {} });
    expect(installedTarball(other.path)).toBeNull();
  });
});
