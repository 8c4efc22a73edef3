export type { EngineAbilities, Sandbox, SandboxAddress, SandboxEngine, SandboxExit, SandboxSpec } from "./engine.ts";
export { MemoryEngine, type MemoryEngineOptions, type MemoryProgram } from "./memory/engine.ts";
export { ProcessEngine, type ProcessEngineOptions } from "./process/engine.ts";
export { identityOf, isRunning, openProcessTable, type ProcessIdentity, type ProcessTable } from "./process/process-table.ts";
