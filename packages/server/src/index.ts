export { type NewAdmin, resetAdmin } from "./access/reset-admin.ts";
export { type BackupOptions, backUp } from "./backup/backup.ts";
export type { BackupManifest } from "./backup/format.ts";
export { type RestoreOptions, restore } from "./backup/restore.ts";
export {
  fileVariableOf,
  readServerConfig,
  resourceSettingNames,
  type ServerConfig,
  serverConfig,
  shownConfig,
  variableOf,
} from "./config/config.ts";
export { destroySandboxes } from "./engine.ts";
export type { BuiltInBundle, BuiltIns } from "./hub/built-ins.ts";
export type { RunningServer, ServerParts } from "./parts.ts";
export { startServer } from "./server.ts";
