import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isPlatformError, messageOf } from "@aenv/contract";
import { loadEnvironment, serve } from "@aenv/kit";

// A process of its own, for it runs the environment's code: node describe.ts <folder>. It sends what it finds to its parent.
const folder = mkdtempSync(join(tmpdir(), "aenv-"));
let answer: object;
try {
  const { name, version, definition } = await loadEnvironment(process.argv[2] ?? ".");
  // Served without an instance, and to nobody: only to learn what it offers.
  const served = await serve(definition, { name, version, first: null, socketPath: join(folder, "box.sock") });
  const { tools, catalogue } = served.host.blueprint;
  answer = { tools: [...tools.values()].map((tool) => tool.descriptor), functions: catalogue.functions, rewards: catalogue.reward };
  await served.close();
} catch (error) {
  answer = { error: messageOf(error), place: isPlatformError(error) ? error.details.place : undefined };
}
rmSync(folder, { recursive: true });
process.send?.(answer, () => process.exit(0));
