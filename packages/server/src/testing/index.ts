export { startApp } from "../api/fixtures/app.ts";
export { ada, bob } from "../instances/fixtures/test-server.ts";
export { Scheduler } from "../slots/scheduler.ts";
export { MemoryRows, MemoryStore } from "../stores/memory/store.ts";
