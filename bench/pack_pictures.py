#!/usr/bin/env python3
"""CIFAR-10 at 16 x 16, means of 2 x 2 pixels, for machines that are far: 30 MB packed.

    pack_pictures.py pack FOLDER OUT           the six batches of FOLDER, *.bin or *.bin.xz
    pack_pictures.py unpack IN TRAIN.npy TEST.npy [TRAIN.bin TEST.bin]

*.bin are in CIFAR-10's format, with classes and every pixel four times: n2ce's --halve 1 makes of them what
*.npy have. Green is taken off red and blue, every byte predicted from its neighbours (Paeth), the
rest is xz; the classes follow.
"""
import hashlib
import lzma
import multiprocessing
import os
import struct
import sys

SIDE = 16
ROW = 3 * SIDE
SIZE = SIDE * ROW
RECORD = 1 + 3 * 32 * 32


def halve(records):
    """Batches of CIFAR-10, planes of 32 x 32, as pixels of 16 x 16."""
    out = bytearray(len(records) // RECORD * SIZE)
    for i in range(len(records) // RECORD):
        planes = records[i * RECORD + 1:(i + 1) * RECORD]
        for k in range(SIZE):
            y, x, c = k // ROW, k % ROW // 3, k % 3
            at = 1024 * c + 64 * y + 2 * x
            sum4 = planes[at] + planes[at + 1] + planes[at + 32] + planes[at + 33]
            out[i * SIZE + k] = (sum4 + 2) // 4
    return bytes(out)


def predict(b, k):
    x, y = k % ROW // 3, k // ROW
    left = b[k - 3] if x else (b[k - ROW] if y else 0)
    up = b[k - ROW] if y else left
    corner = b[k - ROW - 3] if x and y else up
    guess = left + up - corner
    of_left, of_up, of_corner = abs(guess - left), abs(guess - up), abs(guess - corner)
    if of_left <= of_up and of_left <= of_corner:
        return left
    return up if of_up <= of_corner else corner


def encode(pictures):
    out = bytearray(len(pictures))
    for start in range(0, len(pictures), SIZE):
        b = bytearray(pictures[start:start + SIZE])
        for i in range(0, SIZE, 3):
            b[i] = (b[i] - b[i + 1]) & 255
            b[i + 2] = (b[i + 2] - b[i + 1]) & 255
        for k in range(SIZE):
            out[start + k] = (b[k] - predict(b, k)) & 255
    return bytes(out)


def decode(rests):
    out = bytearray(len(rests))
    for start in range(0, len(rests), SIZE):
        b = bytearray(SIZE)
        for k in range(SIZE):
            b[k] = (rests[start + k] + predict(b, k)) & 255
        for i in range(0, SIZE, 3):
            b[i] = (b[i] + b[i + 1]) & 255
            b[i + 2] = (b[i + 2] + b[i + 1]) & 255
        out[start:start + SIZE] = b
    return bytes(out)


def double(pictures):
    """Planes of 32 x 32, every pixel four times."""
    out = []
    for start in range(0, len(pictures), SIZE):
        for c in range(3):
            wide = bytearray(2 * SIDE * SIDE)
            wide[0::2] = wide[1::2] = pictures[start + c:start + SIZE:3]
            out += [wide[i:i + 2 * SIDE] * 2 for i in range(0, len(wide), 2 * SIDE)]
    return b"".join(out)


def all_of(function, data, size):
    step = 500 * size
    with multiprocessing.Pool() as pool:
        return b"".join(pool.map(function, [data[i:i + step] for i in range(0, len(data), step)]))


def read(folder, name):
    path = os.path.join(folder, name)
    if os.path.exists(path):
        return open(path, "rb").read()
    with lzma.open(path + ".xz") as file:
        return file.read()


def write(path, data):
    head = "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, %d, %d, 3), }" % (
        len(data) // SIZE, SIDE, SIDE)
    head += " " * (-(11 + len(head)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)


def write_records(path, pictures, labels):
    planes = all_of(double, pictures, SIZE)
    with open(path, "wb") as file:
        for i, label in enumerate(labels):
            file.write(bytes([label]) + planes[i * (RECORD - 1):(i + 1) * (RECORD - 1)])


def pack(folder, to):
    batches = [read(folder, f"data_batch_{i}.bin") for i in range(1, 6)] + [read(folder, "test_batch.bin")]
    pictures = b"".join(all_of(halve, batch, RECORD) for batch in batches)
    labels = b"".join(batch[::RECORD] for batch in batches)
    of_train = sum(map(len, batches[:5])) // RECORD
    packed = lzma.compress(all_of(encode, pictures, SIZE) + labels, preset=5)
    with open(to, "wb") as file:
        file.write(struct.pack("<Q", of_train) + hashlib.sha256(pictures + labels).digest() + packed)


def unpack(path, train, test, *records):
    packed = open(path, "rb").read()
    n, = struct.unpack("<Q", packed[:8])
    data = lzma.decompress(packed[40:])
    split = len(data) // (SIZE + 1) * SIZE
    pictures, labels = all_of(decode, data[:split], SIZE), data[split:]
    if hashlib.sha256(pictures + labels).digest() != packed[8:40]:
        sys.exit(f"{path} is damaged.")
    write(train, pictures[:n * SIZE])
    write(test, pictures[n * SIZE:])
    if records:
        write_records(records[0], pictures[:n * SIZE], labels[:n])
        write_records(records[1], pictures[n * SIZE:], labels[n:])


def main():
    task, paths = sys.argv[1:2], sys.argv[2:]
    if task == ["pack"] and len(paths) == 2:
        return pack(*paths)
    if task == ["unpack"] and len(paths) in (3, 5):
        return unpack(*paths)
    sys.exit(__doc__)


if __name__ == "__main__":
    main()
