export { type NewAdmin, resetAdmin } from "./access/reset-admin.ts";
export { type BackupOptions, backUp } from "./backup/backup.ts";
export type { BackupManifest } from "./backup/format.ts";
export { type RestoreOptions, restore } from "./backup/restore.ts";
export { clusterAccess } from "./cluster-access.ts";
export { fileVariableOf, readServerConfig, type ServerConfig, serverConfig, shownConfig, variableOf } from "./config/config.ts";
export { destroySandboxes, imageLimits } from "./engine.ts";
export type { BuiltInBundle, BuiltIns } from "./hub/built-ins.ts";
export { type RunningServer, type ServerParts, startServer } from "./server.ts";
