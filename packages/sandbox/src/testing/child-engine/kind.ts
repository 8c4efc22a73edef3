import type { EngineKind } from "../../engine/kind.ts";
import { ChildEngine } from "./engine.ts";

export const childKind: EngineKind<{ readonly home: string }> = {
  summary: "children of the server",
  variants: [{ use: "children of the server; no isolation", needs: [] }],
  open: async ({ home }, { runner }) => ({ engine: new ChildEngine(home), runner }),
};
