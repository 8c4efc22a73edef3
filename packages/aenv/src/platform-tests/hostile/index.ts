export { environmentAttacks, type Mallory, type MalloryOptions, startMallory } from "./mallory.ts";
export { type HostileModel, hostileModel, modelAttacks } from "./models.ts";
export { type HostileRegistry, hostileRegistry } from "./registry.ts";
