import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding } from "@aenv/testing";
import { afterAll } from "vitest";
import { type Behaviour, describeEngine } from "../conformance.ts";
import { TEST_PROGRAM } from "../fixtures/test-root.ts";
import { OciEngine } from "./engine.ts";
import { testBase } from "./testing/base.ts";
import { leftoversOf } from "./testing/leftovers.ts";
import { programs } from "./testing/programs.ts";

// Shared by all engines, because it has a copy of Node.
const storeFolder = mkdtempSync(join(tmpdir(), "aenv-oci-store-"));
afterAll(() => rmSync(storeFolder, { recursive: true, force: true }));

function command(behaviour: Behaviour): readonly string[] {
  return behaviour === "missing" ? ["/no/such/program"] : ["/usr/bin/node", TEST_PROGRAM, behaviour];
}

for (const program of ["crun", "runc", "runsc"] as const) {
  describeNeeding(program, `the oci engine with ${program}`, () => {
    describeEngine(`oci with ${program}`, {
      open: (home) => new OciEngine({ home, ...programs[program], base: testBase, storeFolder }),
      command,
      leftovers: leftoversOf,
    });
  });
}
