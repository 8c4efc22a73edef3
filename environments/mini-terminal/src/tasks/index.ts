import { csvTotals } from "./catalog/csv-totals.ts";
import { decodeMessage } from "./catalog/decode-message.ts";
import { deduplicate } from "./catalog/deduplicate.ts";
import { findToken } from "./catalog/find-token.ts";
import { fixScript } from "./catalog/fix-script.ts";
import { joinTables } from "./catalog/join-tables.ts";
import { logErrors } from "./catalog/log-errors.ts";
import { movePort } from "./catalog/move-port.ts";
import { permissions } from "./catalog/permissions.ts";
import { renameFiles } from "./catalog/rename-files.ts";
import { repairFiles } from "./catalog/repair-files.ts";
import { splitByDay } from "./catalog/split-by-day.ts";
import type { TerminalTask } from "./task.ts";

export const tasks: readonly TerminalTask[] = [
  logErrors,
  csvTotals,
  renameFiles,
  findToken,
  permissions,
  deduplicate,
  decodeMessage,
  movePort,
  joinTables,
  splitByDay,
  repairFiles,
  fixScript,
];
