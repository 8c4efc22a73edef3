import { dataPath } from "@aenv/kit";
import { terminalBench } from "./environment/environment.ts";
import { bundledTasks } from "./environment/settings.ts";

export default terminalBench({ tasksFolder: bundledTasks(dataPath("tasks")), variables: process.env });
