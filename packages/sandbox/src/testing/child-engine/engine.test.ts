import { fileURLToPath } from "node:url";
import { describeEngine } from "../../conformance.ts";
import { ChildEngine } from "./engine.ts";

const program = fileURLToPath(new URL("../../fixtures/program.js", import.meta.url));

describeEngine("child", {
  open: (home) => new ChildEngine(home),
  command: (behaviour) => (behaviour === "missing" ? ["/no/such/program"] : [process.execPath, program, behaviour]),
  skip: {
    "sandboxes outlive their engine, and the next engine finds them": "its sandboxes end with it",
    "connect reaches a port on which a process of the sandbox listens": "its sandboxes have no ports",
    "connect refuses a port on which no process of the sandbox listens, even if another process does": "its sandboxes have no ports",
  },
});
