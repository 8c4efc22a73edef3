export * from "@aenv/rollout";
