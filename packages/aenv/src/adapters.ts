export * from "@aenv/sdk/adapters";
