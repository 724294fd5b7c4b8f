/* Functions of random networks. Twins: lib.redshift.random_networks (Prior, forward), lib.complexity (fourier, lempel_ziv, fourier_plane,
   fourier_flat, phrases_of_constant). An image is M × M values on the grid of [-1, 1]², the first coordinate along rows. */
(function (root) {
  "use strict";
  const E = (root.Explorers = root.Explorers || {}), F = (E.functions = {});
  const M = 64, WIDTH = 64, LEVELS = 10;

  F.ACTIVATIONS = {
    relu: (z) => (z > 0 ? z : 0),
    tanh: Math.tanh,
    gaussian: (z) => Math.exp(-0.5 * z * z),
    sine: Math.sin,
  };

  /* Layers of {weight (out, in), bias (out)}: weights uniform in ±magnitude sqrt(6 / (in + out)), biases in ±1. The numbers come from the
     seed alone: another activation or magnitude shows the same draw in another light. */
  F.draw = function (magnitude, depth, seed) {
    const generator = E.generator(seed), sizes = [2, ...new Array(depth).fill(WIDTH), 1];
    return sizes.slice(1).map((out, i) => {
      const reach = magnitude * Math.sqrt(6 / (sizes[i] + out));
      return { weight: generator.uniforms(out * sizes[i]).map((u) => reach * (2 * u - 1)), bias: generator.uniforms(out).map((u) => 2 * u - 1), out, inputs: sizes[i] };
    });
  };

  /* Rows `from` to `to` of the image, written into it. */
  F.paintRows = function (image, layers, activation, from, to) {
    const phi = F.ACTIVATIONS[activation], points = (to - from) * M;
    let h = new Float64Array(points * 2);
    for (let p = 0; p < points; p++) {
      h[2 * p] = -1 + (2 * (from + Math.floor(p / M))) / (M - 1);
      h[2 * p + 1] = -1 + (2 * (p % M)) / (M - 1);
    }
    layers.forEach(({ weight, bias, out, inputs }, l) => {
      const z = E.product(h, E.transposed(weight, out, inputs), points, inputs, out), last = l === layers.length - 1;
      for (let p = 0, i = 0; p < points; p++) for (let o = 0; o < out; o++, i++) z[i] = last ? z[i] + bias[o] : phi(z[i] + bias[o]);
      h = z;
    });
    image.set(h, from * M);
  };

  F.image = function (activation, magnitude, depth, seed) {
    const image = new Float64Array(M * M);
    F.paintRows(image, F.draw(magnitude, depth, seed), activation, 0, M);
    return image;
  };

  const flat = (low, high) => high - low <= 8 * 2 ** -52 * Math.max(Math.abs(low), Math.abs(high));
  const extent = (image) => image.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);

  /* Mean frequency, weighted by the magnitude of the Fourier coefficients, every wave once (half plane, without the constant). */
  F.fourier = function (image) {
    const [low, high] = extent(image), mean = E.sum(Array.from(image)) / image.length;
    if (flat(low, high)) return 0;
    const half = M / 2, cos = E.range(M).map((k) => Math.cos((2 * Math.PI * k) / M)), sin = E.range(M).map((k) => Math.sin((2 * Math.PI * k) / M));
    const re = new Float64Array(M * (half + 1)), im = new Float64Array(M * (half + 1));
    for (let r = 0; r < M; r++)
      for (let k = 0; k <= half; k++) {
        let a = 0, b = 0;
        for (let c = 0, t = 0; c < M; c++, t = (t + k) % M) {
          const v = image[r * M + c] - mean;
          a += v * cos[t];
          b -= v * sin[t];
        }
        re[r * (half + 1) + k] = a;
        im[r * (half + 1) + k] = b;
      }
    let total = 0, weighted = 0;
    for (let j = 0; j < M; j++)
      for (let k = 0; k <= half; k++) {
        let a = 0, b = 0;
        for (let r = 0, t = 0; r < M; r++, t = (t + j) % M) {
          const x = re[r * (half + 1) + k], y = im[r * (half + 1) + k];
          a += x * cos[t] + y * sin[t];
          b += y * cos[t] - x * sin[t];
        }
        if (j === 0 && k === 0) continue;
        const size = Math.hypot(a, b) * (k === 0 || k === half ? 0.5 : 1);
        total += size;
        weighted += size * Math.hypot(j > half ? j - M : j, k);
      }
    return total === 0 ? 0 : weighted / total;
  };

  /* Values rounded to ten levels of their own range; halves go to the even one, as torch rounds. */
  F.quantise = function (image) {
    const [low, high] = extent(image);
    if (flat(low, high)) return new Uint8Array(image.length);
    const scale = (LEVELS - 1) / (high - low);
    return Uint8Array.from(image, (v) => {
      const scaled = (v - low) * scale, below = Math.floor(scaled), rest = scaled - below;
      return rest > 0.5 || (rest === 0.5 && below % 2) ? below + 1 : below;
    });
  };

  /* Phrases into which LZ78 cuts the image, read column by column. */
  F.lempelZiv = function (image) {
    const symbols = F.quantise(image), child = new Int32Array((M * M + 1) * LEVELS);
    let node = 0, phrases = 0;
    for (let c = 0; c < M; c++)
      for (let r = 0; r < M; r++) {
        const branch = node * LEVELS + symbols[r * M + c];
        node = child[branch];
        if (node === 0) child[branch] = ++phrases;
      }
    return phrases;
  };

  /* What a plane gets, and what a flat spectrum gets. */
  F.floor = (function () {
    let total = 0, weighted = 0;
    for (let k = 1; k <= M / 2; k++) {
      const size = (1 / Math.sin((Math.PI * k) / M)) * (k === M / 2 ? 0.5 : 1);
      total += size;
      weighted += size * k;
    }
    return weighted / total;
  })();
  F.ceiling = (function () {
    let total = 0, weighted = 0;
    for (let j = 0; j < M; j++)
      for (let k = 0; k <= M / 2; k++) {
        if (j === 0 && k === 0) continue;
        const weight = k === 0 || k === M / 2 ? 0.5 : 1;
        total += weight;
        weighted += weight * Math.hypot(j >= M / 2 ? j - M : j, k);
      }
    return weighted / total;
  })();

  F.compute = function ({ activation, magnitude, depth, seed }) {
    const image = F.image(activation, magnitude, depth, seed);
    return { image, fourier: F.fourier(image), phrases: F.lempelZiv(image), floor: F.floor, ceiling: F.ceiling };
  };

  /* ---- on the page ---- */

  let seed = 7, image = null, kept = [], queue = [];
  const setting = (models) => ({ activation: models.activation.value, magnitude: 2 ** models.magnitude.value, depth: models.depth.value });

  F.start = function (models) {
    for (let power = -1; power <= 4; power++)
      for (const activation of ["relu", "sine"]) queue.push({ activation, magnitude: 2 ** power, depth: 3, seed: 100 + power });
    F.update(models);
  };

  F.again = function (models) {
    seed += 1;
    F.update(models);
  };

  /* Draw the function a few rows at a time, so that no frame takes long; measure it when it is there. The first points of the right
     plot are drawn behind it, one a frame. */
  F.update = function (models) {
    const { activation, magnitude, depth } = setting(models), layers = F.draw(magnitude, depth, seed), fresh = new Float64Array(M * M);
    let row = 0;
    E.run("functions", () => {
      const begin = performance.now();
      while (row < M && performance.now() - begin < 14) {
        F.paintRows(fresh, layers, activation, row, row + 4);
        row += 4;
        if (row < M) continue;
        image = fresh;
        models.picture.data.image[0].set(image);
        models.picture.change.emit();
        F.measure(models, { activation, magnitude, depth });
        return queue.length > 0;
      }
      if (row < M) return true;
      const { seed: own, ...one } = queue.shift();
      kept.unshift({ ...one, fourier: F.fourier(F.image(one.activation, one.magnitude, one.depth, own)) });
      F.repaint(models);
      return queue.length > 0;
    });
  };

  F.measure = function (models, now) {
    const fourier = F.fourier(image), phrases = F.lempelZiv(image), id = JSON.stringify([now, seed]);
    if (!kept.some((one) => one.id === id)) kept.push({ id, ...now, fourier });
    kept = kept.slice(-400);
    F.repaint(models);
    models.latest.data = { magnitude: [now.magnitude], fourier: [fourier] };
    const share = (fourier - F.floor) / (F.ceiling - F.floor);
    const like = share < 0.08 ? "hardly more than a plane" : share < 0.3 ? "a gentle landscape" : share < 0.7 ? "a busy one" : "close to white noise";
    E.say("functions", `Fourier complexity ${fourier.toFixed(1)}, between ${F.floor.toFixed(1)} (a plane) and ${F.ceiling.toFixed(1)} (white noise): ${like}. Lempel-Ziv: ${phrases} phrases.`);
  };

  F.repaint = function (models) {
    models.kept.data = { magnitude: kept.map((one) => one.magnitude), fourier: kept.map((one) => one.fourier), colour: kept.map((one) => E.colour(one.activation)) };
  };
})(globalThis);
