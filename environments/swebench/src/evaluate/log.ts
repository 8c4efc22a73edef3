/** What happened to an instance: the text of `run_instance.log`, in the format of the reference. */
export class InstanceLog {
  readonly #now: () => Date;
  #text = "";

  constructor(now: () => Date) {
    this.#now = now;
  }

  info(message: string): void {
    this.#add("INFO", message);
  }

  warn(message: string): void {
    this.#add("WARNING", message);
  }

  error(message: string): void {
    this.#add("ERROR", message);
  }

  get text(): string {
    return this.#text;
  }

  #add(level: string, message: string): void {
    const time = this.#now().toISOString().replace("T", " ").replace(".", ",").replace("Z", "");
    this.#text += `${time} - ${level} - ${message}\n`;
  }
}
