// The worker: runs the compiler, cmd/ibweave-page, which is the function answer of a WebAssembly
// module. unpack and inflate of data.js stand before this text.

const queue = []; // requests that wait
let warm = [];    // requests that only make the browser compile the module well
let module, running = false;

const memory = () => new DataView(module.memory.buffer);
const bytes = (at, n) => new Uint8Array(module.memory.buffer, at, n);

// wasi is what the module asks of its host: clocks, random numbers, standard error. There is
// nothing else: other calls fail with EBADF.
const wasi = {
  clock_time_get: (id, precision, at) => {
    const ms = id ? performance.now() : Date.now();
    memory().setBigUint64(at, BigInt(Math.round(1e6 * ms)), true);
    return 0;
  },
  random_get: (at, n) => {
    for (let i = 0; i < n; i += 65536) crypto.getRandomValues(bytes(at + i, Math.min(65536, n - i)));
    return 0;
  },
  fd_write: (fd, list, n, at) => {
    let all = 0;
    for (let i = 0; i < n; i++) {
      const length = memory().getUint32(list + 8 * i + 4, true);
      said += new TextDecoder().decode(bytes(memory().getUint32(list + 8 * i, true), length));
      all += length;
    }
    memory().setUint32(at, all, true);
    return 0;
  },
  args_sizes_get: (n, size) => none(n, size),
  environ_sizes_get: (n, size) => none(n, size),
  args_get: () => 0,
  environ_get: () => 0,
  sched_yield: () => 0,
  poll_oneoff: (from, to, n, at) => {
    memory().setUint32(at, 0, true);
    return 0;
  },
  proc_exit: status => { throw new Error(`the compiler ended with status ${status}: ${said.slice(0, 500)}`); },
};
let said = ""; // on standard error, of a program that fails

function none(n, size) {
  memory().setUint32(n, 0, true);
  memory().setUint32(size, 0, true);
  return 0;
}

// ask gives the parts of an answer.
function ask(request) {
  bytes(module.input(request.length), request.length).set(request);
  const n = module.answer();
  return Array.from({length: n}, (_, i) => bytes(module.part(i), module.size(i)).slice().buffer);
}

// sevens gives the bytes of a text that has seven bits in each character, as writeSevens packs them.
function sevens(text) {
  const bytes = new Uint8Array(Math.floor(text.length * 7 / 8));
  for (let i = 0, at = 0, held = 0, n = 0; i < text.length; i++) {
    held = held << 7 | text.charCodeAt(i) & 127;
    n += 7;
    if (n >= 8) bytes[at++] = held >> (n -= 8);
  }
  return bytes;
}

const encode = text => new TextEncoder().encode(text);

async function open({compiler, tables}) {
  const [code, base] = await Promise.all([inflate(sevens(compiler)), unpack(tables)]);
  const compiled = await WebAssembly.compile(code), imports = {};
  for (const {name} of WebAssembly.Module.imports(compiled)) imports[name] = wasi[name] || (() => 8);
  module = (await WebAssembly.instantiate(compiled, {wasi_snapshot_preview1: imports})).exports;
  module._initialize();
  const verb = encode("open "), request = new Uint8Array(verb.length + base.byteLength);
  request.set(verb);
  request.set(new Uint8Array(base), verb.length);
  return ask(request);
}

let prepared = false; // for the next step

// run answers what waits, and else warms up or prepares for the next step.
function run() {
  running = true;
  const next = queue.shift();
  try {
    if (next) {
      const start = performance.now(), parts = ask(encode(next.request));
      postMessage({id: next.id, parts, worked: performance.now() - start}, parts);
      prepared = false;
    } else if (warm.length) {
      const taken = ask(encode(warm.shift())).length > 1; // else it is not possible now
      if (taken) ask(encode("undo"));
      if (!warm.length) postMessage({warm: true});
    } else {
      ask(encode("prepare"));
      prepared = true;
    }
  } catch (err) {
    postMessage({failed: String(err)});
    return;
  }
  running = queue.length + warm.length > 0 || !prepared;
  if (running) setTimeout(run); // messages come in between
}

onmessage = async ({data}) => {
  if (data.compiler) {
    try {
      const parts = await open(data);
      warm = data.warm;
      postMessage({id: data.id, parts}, parts);
    } catch (err) {
      postMessage({failed: String(err)});
      return;
    }
  } else queue.push(data);
  if (!running && module) run();
};
