export * from "@aenv/sdk";
