-- Integers from 0 to n - 1 that look random and are the same everywhere: two multiplications modulo 2^32, folded.
CREATE MACRO mix1(i, k) AS ((i::BIGINT * 2654435761 + k * 3935559001 + 97) % 4294967296);
CREATE MACRO mix2(x) AS (xor(x, x // 32768) * 1540483477 % 4294967296);
CREATE MACRO mix(i, k, n) AS ((xor(mix2(mix1(i, k)), mix2(mix1(i, k)) // 8192) // 64) % n);
