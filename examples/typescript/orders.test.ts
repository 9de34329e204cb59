import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";

import kafkajs from "kafkajs";

import { Broker } from "./broker.js";

const { Kafka, Partitioners, logLevel } = kafkajs;

let broker: Broker;

beforeEach(async () => {
  broker = await Broker.start();
  await broker.control.POST("/v1/topics", { body: { name: "orders" } });
});

afterEach(() => broker.stop());

function client() {
  return new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50 } });
}

async function produce(value: string) {
  const producer = client().producer({ createPartitioner: Partitioners.DefaultPartitioner });
  await producer.connect();
  await producer.send({ topic: "orders", messages: [{ value }] });
  await producer.disconnect();
}

test("a fault: an order arrives though replicas are missing", async () => {
  const rule = { api: "Produce", error: "NOT_ENOUGH_REPLICAS", times: 2 };
  const { data: added } = await broker.control.POST("/v1/faults", { body: rule });

  await produce("an order");

  const { data: fault } = await broker.control.GET("/v1/faults/{fault}", { params: { path: { fault: added!.fault } } });
  assert.equal(fault!.hits, 2);
  const { data: found } = await broker.control.GET("/v1/topics/{topic}/records", { params: { path: { topic: "orders" } } });
  assert.equal(found!.records.length, 1);
});

test("a time jump: an order is forgotten after a week", async () => {
  await produce("old");
  await broker.control.POST("/v1/clock/advance", { body: { days: 8 } });
  await produce("new");

  const admin = client().admin();
  await admin.connect();
  const [offsets] = await admin.fetchTopicOffsets("orders");
  await admin.disconnect();
  assert.deepEqual([offsets.low, offsets.high], ["1", "2"]);
});
