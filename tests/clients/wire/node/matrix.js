// What a program in JavaScript does with a server: each part prints one line of JSON, [name, what it saw or the error].
const fs = require('fs');
const { Client, Pool, types } = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');

const [config, certificate] = [JSON.parse(process.argv[2]), process.argv[3]];
const SLOW = 'SELECT count(*) FROM generate_series(1, 100000) AS a(i), generate_series(1, 1000000) AS b(j) WHERE (i * j) % 7 = 3';
const ODD = 'O\'Brien "ä€😀" \\ ward';

async function part(name, ask) {
  let told;
  try {
    told = await ask();
  } catch (e) {
    told = { state: e.code, message: e.message, detail: e.detail, hint: e.hint, position: e.position, severity: e.severity };
  }
  console.log(JSON.stringify([name, told]));
}

async function connected(options, ask) {
  const client = new Client({ ...config, ...options });
  client.on('error', () => {});
  await client.connect();
  try {
    return await ask(client);
  } finally {
    await client.end();
  }
}

const arrays = (result) => [result.fields.map((one) => [one.name, one.dataTypeID]), result.rows];
const ask = (client, text, values) => client.query({ text, values, rowMode: 'array' }).then(arrays);

async function main() {
  await connected({ application_name: 'matrix' }, async (c) => {
    await part('literals', () => ask(c, "SELECT 1, 'x', NULL, true, 1.50, 2.5::float8, 9007199254740993"));
    await part('application_name', () => ask(c, 'SHOW application_name'));
    await part('wards', () => ask(c, 'SELECT * FROM wards ORDER BY ward'));
    await part('wards in binary', () =>
      c.query({ text: 'SELECT ward, floor, beds, share, open FROM wards ORDER BY ward', rowMode: 'array', binary: true }).then(arrays));
    await part('lists', () => ask(c, "SELECT ARRAY[1, 2, NULL], ARRAY['a', NULL, 'c d', '{', '\"'], ARRAY[1.5, NULL]"));
    await part('parameters', () => ask(c,
      'SELECT ward FROM wards WHERE floor = $1 AND beds = $2 AND number = $3 AND share = $4 AND fee = $5 AND opened = $6'
      + ' AND changed = $7 AND rounds = $8 AND code = $9 AND open = $10',
      [1, 20, '9007199254740993', 0.1, '1234.500', '1999-12-31', new Date('2024-06-01T12:00:00Z'), '07:30',
        '0d1f7d1c-5c6b-4f0e-9a53-6d1f4a1c2b3d', true]));
    await part('odd text', () => ask(c, 'SELECT ward FROM wards WHERE ward = $1', [ODD]));
    await part('null', () => ask(c, 'SELECT count(*) FROM wards WHERE ward = $1', [null]));
    await part('wrong text', () => ask(c, 'SELECT count(*) FROM wards WHERE beds = $1', ['many']));
    await part('named statements', async () => {
      const seen = [];
      for (const ward of ['cardiology', 'emergency', ODD, 'cardiology'])
        seen.push((await c.query({ name: 'beds', text: 'SELECT beds FROM wards WHERE ward = $1', values: [ward], rowMode: 'array' })).rows);
      return seen;
    });
    await part('counts', () => ask(c, 'SELECT ward, count(*) FROM visits WHERE nights >= $1 GROUP BY ward ORDER BY ward', [0]));
    await part('error', () => ask(c, "SELECT 'ä€😀', count(*)\nFROM visits WHERE nothing = 1"));
    await part('after an error', () => ask(c, 'SELECT 1'));
    await part('several', async () => {
      const all = await c.query("SELECT 1 AS a; SET application_name = 'other'; SELECT 2 AS b");
      return all.map((one) => [one.command, one.rowCount, one.rows]);
    });
    await part('nothing', async () => [(await c.query('')).rows, (await c.query('-- nothing')).rows]);
    await part('command tags', async () => {
      const seen = [];
      for (const text of ['BEGIN', 'SET LOCAL statement_timeout = 54321', 'SHOW statement_timeout', 'COMMIT', 'BEGIN', 'ROLLBACK', 'DISCARD ALL',
        'SELECT 1', 'SELECT * FROM wards', 'RESET ALL', 'DEALLOCATE ALL', 'CLOSE ALL', 'UNLISTEN *'])
        seen.push([text, (await c.query(text)).command, (await c.query('SELECT 1')).rowCount]);
      return seen;
    });
    await part('failed transaction', async () => {
      const seen = [];
      for (const text of ['BEGIN', 'SELECT nothing FROM wards', 'SELECT 1', 'COMMIT', 'SELECT 1'])
        seen.push(await c.query(text).then((one) => one.command, (e) => e.code));
      return seen;
    });
    await part('cursor', async () => {
      const cursor = c.query(new Cursor('SELECT i FROM generate_series(1, 2500) AS s(i)', [], { rowMode: 'array' }));
      const sizes = [];
      for (let rows = await cursor.read(1000); rows.length; rows = await cursor.read(1000)) sizes.push(rows.length);
      await cursor.close();
      return sizes;
    });
    await part('cursor left early', async () => {
      const cursor = c.query(new Cursor('SELECT i FROM generate_series(1, 2500) AS s(i)', []));
      const first = await cursor.read(10);
      await cursor.close();
      return [first.length, (await ask(c, 'SELECT 1'))[1]];
    });
    await part('stream', async () => {
      let [count, sum] = [0, 0];
      for await (const row of c.query(new QueryStream('SELECT i FROM generate_series(1, 100000) AS s(i)'))) { count += 1; sum += Number(row.i); }
      return [count, sum];
    });
    await part('large', async () => {
      const found = (await ask(c, "SELECT i::int4, 'row ' || i FROM generate_series(1, 100000) AS s(i)"))[1];
      return [found.length, found[0], found[99999]];
    });
  });
  await part('wrong password', () => connected({ password: 'wrong' }, async () => 'connected'));
  await part('unknown database', () => connected({ database: 'nothing' }, async () => 'connected'));
  await part('options', () => connected({ options: '-c statement_timeout=4321' }, (c) => ask(c, 'SHOW statement_timeout')));
  await part('statement timeout', () => connected({ statement_timeout: 300 }, (c) => ask(c, SLOW)));
  await part('cancel', () => connected({}, async (c) => {
    const pid = c.processID;
    const other = new Client(config);
    const slow = ask(c, SLOW).catch((e) => e.code);
    await new Promise((done) => setTimeout(done, 300));
    other.connection.on('error', () => {});
    other.cancel(c, c.activeQuery || c._getActiveQuery());
    return [await slow, pid > 0, (await ask(c, 'SELECT 1'))[1]];
  }));
  await part('notices', () => connected({}, async (c) => {
    const heard = [];
    c.on('notice', (one) => heard.push([one.severity, one.code, one.message]));
    await ask(c, 'SELECT count(*) FROM patients WHERE insured');
    return heard;
  }));
  await part('pool', async () => {
    const pool = new Pool({ ...config, max: 4 });
    const all = await Promise.all(Array.from({ length: 12 }, (_, i) => pool.query('SELECT $1::int4 AS n, ward FROM wards ORDER BY ward LIMIT 1', [i])));
    await pool.end();
    return all.map((one) => one.rows[0].n);
  });
  if (certificate) {
    const ca = fs.readFileSync(certificate, 'utf8');
    await part('tls', () => connected({ ssl: { ca } }, async (c) => [c.connection.stream.encrypted, c.connection.stream.authorized, (await ask(c, 'SELECT 1'))[1]]));
    await part('tls of a stranger', () => connected({ ssl: {} }, async () => 'connected'));
    await part('tls of another name', () => connected({ host: '127.0.0.1', ssl: { ca, servername: 'other.example' } }, async () => 'connected'));
  }
}

main();
