// Writes photo-sized images: a real encoder's JPEG (lying on its side, as a
// telephone writes it), PNG and WebP of 4032 by 3024 pixels.
//
//   node photos.mjs DIR
import { join } from 'node:path';
import sharp from 'sharp';

const dir = process.argv[2];
const width = 4032, height = 3024;
const raw = Buffer.alloc(width * height * 3);
for (let y = 0, i = 0; y < height; y++) {
  for (let x = 0; x < width; x++) {
    const sun = Math.exp(-((x - 2600) ** 2 + (y - 1800) ** 2) / 4e5);
    const grain = ((x * 7919) ^ (y * 104729)) & 7;
    raw[i++] = 60 + y / 25 + 70 * sun + grain;
    raw[i++] = 40 + y / 40 + 90 * sun + grain;
    raw[i++] = 120 - y / 40 + grain;
  }
}
const photo = () => sharp(raw, { raw: { width, height, channels: 3 } });
await photo().withMetadata({ orientation: 6 }).jpeg({ quality: 88 }).toFile(join(dir, 'photo.jpg'));
await photo().png({ compressionLevel: 3 }).toFile(join(dir, 'photo.png'));
await photo().webp({ quality: 80 }).toFile(join(dir, 'photo.webp'));
