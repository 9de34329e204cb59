import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** An odradek in a process of its own, for one test. */
export class Broker {
  private constructor(
    private readonly process: ChildProcess,
    private readonly control: string,
    private readonly token: string,
    readonly address: string,
  ) {}

  /** Starts one in memory, on free ports. ODRADEK is the command, "odradek" if it is not set. */
  static async start(): Promise<Broker> {
    const [command = "odradek", ...words] = process.env.ODRADEK?.split(" ") ?? [];
    const child = spawn(command, [...words, "serve", "--in-memory", "--port", "0", "--http-port", "0"], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const said: string[] = [];
    for await (const line of createInterface({ input: child.stdout })) {
      said.push(line);
      if (said.length === 2) break;
    }
    const [, control, token] = /^odradek http on (\S+) token (\S+)$/.exec(said[0] ?? "") ?? [];
    const [, address] = /^odradek ready on (\S+)$/.exec(said[1] ?? "") ?? [];
    if (!control || !token || !address) throw new Error(`odradek has not started: ${said}`);
    return new Broker(child, control, token, address);
  }

  /** Sends a request to the control API and returns its answer. */
  async ask(method: string, path: string, body?: object): Promise<any> {
    const response = await fetch(`${this.control}/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.token}` },
      body: body && JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }

  async stop(): Promise<void> {
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    await ended;
  }
}
