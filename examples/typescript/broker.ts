import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

import createClient, { type Client } from "openapi-fetch";

// Generated from the OpenAPI document: npm run generate
import type { paths } from "./control.js";

/** An odradek in a process of its own, for one test. */
export class Broker {
  private constructor(
    private readonly process: ChildProcess,
    /** The control API: its paths, bodies and answers are checked by the compiler. */
    readonly control: Client<paths>,
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
    const [, url, token] = /^odradek http on (\S+) token (\S+)$/.exec(said[0] ?? "") ?? [];
    const [, address] = /^odradek ready on (\S+)$/.exec(said[1] ?? "") ?? [];
    if (!url || !token || !address) throw new Error(`odradek has not started: ${said}`);
    const control = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
    control.use({
      async onResponse({ request, response }) {
        if (!response.ok) throw new Error(`${request.method} ${request.url}: ${await response.text()}`);
      },
    });
    return new Broker(child, control, address);
  }

  async stop(): Promise<void> {
    const ended = once(this.process, "exit");
    this.process.kill("SIGTERM");
    await ended;
  }
}
