#!/usr/bin/env -S node --preserve-symlinks-main
// A native plugin in JavaScript, with nothing but what Node brings: the
// handshake, HTTP/2, gRPC's framing and the one message of plugin.proto are
// little enough to write down. docs/plugin.md says what is spoken here.
'use strict'
const http2 = require('node:http2')
const path = require('node:path')

// The tools. Their schemas are in skill.toml; describing is answered with
// not_found, so that the manifest alone says what there is.
const tools = {
  count (args, call) {
    call.log('debug', `counting ${args.text.length} units`)
    const counted = {
      words: (args.text.match(/\S+/g) ?? []).length,
      lines: args.text === '' ? 0 : args.text.split('\n').length - (args.text.endsWith('\n') ? 1 : 0),
      characters: [...args.text].length
    }
    return { content: [{ type: 'text', text: JSON.stringify(counted) }], structured: counted }
  },
  async now (args, call) { // asks the host, whose clock it is
    const { header } = await call.op({ op: 'time' })
    const time = { now: new Date(header.now_unix_ns / 1e6).toISOString() }
    return { content: [{ type: 'text', text: time.now }], structured: time }
  }
}

// The kinds of message.
const CALL = 1, RESULT = 2, PROGRESS = 3, LOG = 5, OP = 6, REPLY = 7, STOP = 8

// A frame is the length of a JSON header, the header, and blobs.
function frame (header, ...blobs) {
  if (blobs.length) header = { ...header, blobs: blobs.map(b => b.length) }
  const h = Buffer.from(JSON.stringify(header))
  const n = Buffer.alloc(4)
  n.writeUInt32LE(h.length)
  return Buffer.concat([n, h, ...blobs])
}

function parseFrame (b) {
  const end = 4 + b.readUInt32LE(0)
  const header = JSON.parse(b.subarray(4, end))
  const blobs = []
  let at = end
  for (const n of header.blobs ?? []) blobs.push(b.subarray(at, at += n))
  return { header, blobs }
}

// protobuf: message Message { Kind kind = 1; uint32 id = 2; bytes body = 3; }
function varint (n) {
  const out = []
  for (; n > 127; n = Math.floor(n / 128)) out.push(n % 128 | 128)
  return Buffer.from([...out, n])
}

function encode ({ kind, id = 0, body = Buffer.alloc(0) }) {
  const fields = [Buffer.from([8]), varint(kind)]
  if (id) fields.push(Buffer.from([16]), varint(id))
  if (body.length) fields.push(Buffer.from([26]), varint(body.length), body)
  return Buffer.concat(fields)
}

function decode (b) {
  const m = { kind: 0, id: 0, body: Buffer.alloc(0) }
  let at = 0
  const number = () => {
    for (let n = 0, scale = 1; ; scale *= 128) {
      const c = b[at++]
      n += (c & 127) * scale
      if (c < 128) return n
    }
  }
  while (at < b.length) {
    const tag = number()
    if (tag === 8) m.kind = number()
    else if (tag === 16) m.id = number()
    else if (tag === 26) {
      const n = number()
      m.body = b.subarray(at, at += n)
    } else throw new Error(`field ${tag >> 3}`) // this protocol has no other
  }
  return m
}

// Calls, one after another: a stream of messages, each after a byte 0 and its
// length.
function serve (stream) {
  const pending = new Map() // operations, by id
  let last = 0, unread = Buffer.alloc(0)
  const send = m => {
    const b = encode(m)
    const head = Buffer.alloc(5)
    head.writeUInt32BE(b.length, 1)
    stream.write(Buffer.concat([head, b]))
  }
  const json = v => Buffer.from(JSON.stringify(v))
  const call = {
    stopping: false,
    log: (level, message) => send({ kind: LOG, body: json({ level, message }) }),
    progress: (progress, total, message) => send({ kind: PROGRESS, body: json({ progress, total, message }) }),
    op: (header, ...blobs) => new Promise((resolve, reject) => {
      pending.set(++last, { resolve, reject })
      send({ kind: OP, id: last, body: frame(header, ...blobs) })
    })
  }
  async function answer (body) {
    const { header: input } = parseFrame(body)
    try {
      if (input.describe) throw Object.assign(new Error('no description'), { kind: 'not_found' })
      return frame(await tools[input.tool](input.args ?? {}, call))
    } catch (e) {
      return frame({ error: { kind: e.kind ?? 'guest', what: e.message } })
    }
  }
  async function hear (m) {
    if (m.kind === CALL) {
      call.stopping = false
      send({ kind: RESULT, id: m.id, body: await answer(m.body) })
    } else if (m.kind === STOP) {
      call.stopping = true // a tool that takes long looks at this
    } else if (m.kind === REPLY) {
      const waiting = pending.get(m.id)
      if (!pending.delete(m.id)) return // of an earlier call
      if (m.body.length === 0) return waiting.reject(new Error('the host has no such operation'))
      const reply = parseFrame(m.body)
      if (reply.header.error) waiting.reject(Object.assign(new Error(reply.header.error.what), reply.header.error))
      else waiting.resolve(reply)
    }
  }
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
  stream.on('error', () => {}) // the host has ended a call by force
  stream.on('end', () => stream.end())
  stream.on('data', data => {
    unread = Buffer.concat([unread, data])
    while (unread.length >= 5 && unread.length >= 5 + unread.readUInt32BE(1)) {
      const end = 5 + unread.readUInt32BE(1)
      hear(decode(unread.subarray(5, end)))
      unread = unread.subarray(end)
    }
  })
}

if (process.env.SKILL_PLUGIN !== 'skill-plugin-1') {
  console.error('this program is a plugin of skill, which starts it')
  process.exit(1)
}
const server = http2.createServer()
server.on('stream', (stream, headers) => {
  if (headers[':path'] === '/skill.plugin.v1.Plugin/Run') serve(stream)
  else stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '12' }, { endStream: true })
})
server.on('session', session => session.on('close', () => process.exit(0))) // the host is gone
const socket = path.join(process.env.PLUGIN_UNIX_SOCKET_DIR, 'plugin')
server.listen(socket, () => console.log(`1|1|unix|${socket}|grpc`))
