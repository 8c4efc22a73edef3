export { type Component, type ComponentName, components, oldNode, pythonPath } from "./components.ts";
export { describeNeeding, type MissingComponent, missing } from "./needs.ts";
