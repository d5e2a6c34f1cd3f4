"""`handbell run` with no configuration at all."""

from tests.support.product import Product


async def test_run_without_configuration_starts_and_says_how_to_connect(product: Product) -> None:
    product.environment = {"HANDBELL_WEB__LISTEN": "127.0.0.1:0", "HANDBELL_WEB__ADMIN_LISTEN": "127.0.0.1:0"}
    run = await product.started()
    print(run.stdout, run.stderr)
    assert await run.stop() == 0
