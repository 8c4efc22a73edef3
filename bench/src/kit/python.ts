import { compareWithOriginal } from "../original/compare.ts";
import { startServer } from "../processes/server.ts";
import type { Report } from "../suite.ts";
import { servers } from "./calls.ts";

export async function measureBesidePython(report: Report): Promise<void> {
  await using kit = await startServer(servers.kit, ["hot"]);
  await compareWithOriginal(report, "", kit);
}
