import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { exampleRows, examples } from "./example-rows.ts";

// Run it after a change of a task.
writeFileSync(join(examples, "rows.jsonl"), await exampleRows());
